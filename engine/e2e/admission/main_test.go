// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package admission holds the server of webhooks, its certificate and its configurations against a real API server.
package admission

import (
	"os"
	"testing"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// plane is the real control plane.
var plane = &cluster.Cluster{}

// TestMain runs the tests.
func TestMain(m *testing.M) { os.Exit(cluster.Main(m, plane)) }
