// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package likeness holds that the API server in memory answers as a real one does. One table of cases sends the same
// requests to both, and compares what a client sees of the answers.
//
// The table is in testdata, a file for each topic. A row has a name, which is a sentence, and steps:
//
//	# testdata/protocol.yaml
//	- name: A write with an old version is refused
//	  steps:
//	  - POST $core/configmaps: {metadata: {name: a}}
//	    keep: {first: metadata.resourceVersion}
//	  - PATCH $core/configmaps/a: {data: {k: v}}
//	    as: merge
//	  - PUT $core/configmaps/a: {metadata: {name: a, resourceVersion: $first}}
//
// The first key of a step is a method and a path, and its value the body: an object, or a text that is sent as it is.
// Type step has the other keys. A row that needs a namespace has one of its own, $ns, with its ServiceAccount and its
// ConfigMap; $core and $apps are the paths of the groups in it. $group is an API group for the row's CRDs,
// and $model the beginning of their names in OpenAPI documents. Names of
// objects without a namespace begin with $ns. When a CRD has been created, its resource is served before the next step.
//
// All status codes, media types, warnings and bodies are compared, without the values that each server chooses: uids,
// resource versions, times, addresses and random names. Equal uids stay equal, and so do equal versions of objects.
//
// Controllers run on both sides, also those that make workloads come alive. A row that compares whole answers uses
// objects that no controller writes to.
//
// A row whose answers differ says why in its field differs. Then the test fails when they are alike. docs/testing.md
// lists these rows.
package likeness

import (
	"flag"
	"os"
	"testing"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// plane is the real control plane.
var plane = &cluster.Cluster{}

// rows is how many rows run at once: most of their time they wait for the real control plane.
const rows = "16"

// TestMain runs the tests.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", rows); err != nil {
		panic(err) // not reached: testing has the flag
	}
	os.Exit(cluster.Main(m, plane))
}
