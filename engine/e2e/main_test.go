// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the engine against a real API server.
package e2e

import (
	"os"
	"testing"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// plane is the cluster that all tests share.
var plane = &cluster.Cluster{}

// TestMain runs the tests, or, where a test has started this binary once more, the operator that it
// kills.
func TestMain(m *testing.M) {
	if ns := os.Getenv(mortalVariable); ns != "" {
		os.Exit(runMortal(mortal(ns)))
	}
	if ns := os.Getenv(statesVariable); ns != "" {
		os.Exit(runMortal(mortalInStates(ns)))
	}
	os.Exit(cluster.Main(m, plane, "samples/*/crd.yaml", "engine/e2e/testdata/*.yaml"))
}
