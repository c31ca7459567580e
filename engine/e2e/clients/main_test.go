// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package clients holds that clients of Kubernetes work with the API server in memory: kubectl, whose output is compared
// with that against a real cluster, and a program with typed clients and informers.
package clients

import (
	"os"
	"testing"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// definition is a CRD that both servers have.
const definition = "samples/foo/crd.yaml"

// plane is the real control plane.
var plane = &cluster.Cluster{}

// TestMain runs the tests.
func TestMain(m *testing.M) { os.Exit(cluster.Main(m, plane, definition)) }
