// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package customs compares what the API server in memory does with custom resources with what a real one does.
package customs

import (
	"os"
	"testing"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// plane is the real control plane.
var plane = &cluster.Cluster{}

// TestMain runs the tests.
func TestMain(m *testing.M) { os.Exit(cluster.Main(m, plane)) }
