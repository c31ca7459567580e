// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package builtins compares the schemas of built-in kinds of the API server in memory with those of a real one.
package builtins

import (
	"os"
	"testing"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// plane is the real control plane.
var plane = &cluster.Cluster{}

// TestMain runs the tests.
func TestMain(m *testing.M) { os.Exit(cluster.Main(m, plane)) }
