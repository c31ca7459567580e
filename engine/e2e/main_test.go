// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the engine against a real API server.
package e2e

import (
	"context"
	"os"
	"testing"

	"github.com/handwerk-dev/handwerk/cmd"
	"github.com/handwerk-dev/handwerk/cmd/plan"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/handlers"
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
	if os.Getenv(plan.Worker) != "" { // operator plan of the README has started this program again
		os.Exit(cmd.Run(context.Background(), os.Args[1:], cmd.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ()}, handlers.Standard()))
	}
	os.Exit(cluster.Main(m, plane, "samples/*/crd.yaml", "engine/e2e/testdata/*.yaml"))
}
