// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package plans holds plans against a real API server: an operator does there what its plan says.
package plans

import (
	"os"
	"testing"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// plane is the real control plane.
var plane = &cluster.Cluster{}

// TestMain runs the tests.
func TestMain(m *testing.M) { os.Exit(cluster.Main(m, plane, "samples/route-certificate/crd.yaml")) }
