// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// TestNodeLabeller runs the sample with the rights that its roles have: two NodeRoles share a node, and each takes off its own.
func TestNodeLabeller(t *testing.T) {
	t.Parallel()
	nodes, roles := plane.Objects("nodes.v1", ""), plane.Objects("noderoles.v1.example.com", "")
	user, node, mine := plane.User("node-labeller"), nodes.List(t)[0].GetName(), "r"+rand.String(6)
	user.Allow(t, cluster.Rule("apiextensions.k8s.io", "customresourcedefinitions", "get", "list", "watch", "create", "patch"),
		cluster.Rule("example.com", "noderoles", "get", "list", "watch", "patch"), cluster.Rule("", "nodes", "get", "patch"), eventRule())
	program := plane.Operator(t, cluster.Launch{
		Main: sampleMain("node-labeller"), Config: user.Config(), Args: []string{"run", "--install-crds", "--config", sampleFile(t, "node-labeller")},
	})
	program.Await(t, "operator starts")
	plane.AwaitServed(t, plane.Objects(crds, "").Await(t, "noderoles.example.com", "being installed", func(*unstructured.Unstructured) bool { return true }))
	role := func(suffix string) string { return mine + suffix }
	has := func(want string) func(*unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool {
			var got []string
			for _, suffix := range []string{"-a", "-b"} {
				if _, found := o.GetLabels()["role.example.com/"+role(suffix)]; found {
					got = append(got, suffix, o.GetAnnotations()["example.com/"+role(suffix)])
				}
			}
			return strings.Join(got, " ") == want
		}
	}
	for suffix, zones := range map[string]string{"-a": "{" + node + ": east}", "-b": "{}"} {
		plane.Apply(t, "", fmt.Sprintf("apiVersion: example.com/v1\nkind: NodeRole\nmetadata: {name: %s}\nspec: {role: %[1]s, nodes: [%s], zones: %s}\n", role(suffix), node, zones))
	}
	nodes.Await(t, node, "the labels of both", has("-a east -b none"))
	roles.Patch(t, role("-b"), `{"spec":{"nodes":["no-such-node"]}}`)
	nodes.Await(t, node, "the labels of one", has("-a east"))
	roles.Patch(t, role("-b"), `{"spec":{"nodes":["`+node+`"]}}`)
	nodes.Await(t, node, "the labels of both again", has("-a east -b none"))
	for _, suffix := range []string{"-a", "-b"} {
		roles.Delete(t, role(suffix))
		roles.AwaitGone(t, role(suffix))
	}
	if o := nodes.Get(t, node); !has("")(o) || strings.Contains(asJSON(t, o.GetManagedFields()), mine) {
		t.Errorf("the node has %v and %v", o.GetLabels(), o.GetManagedFields())
	}
	for _, o := range nodes.List(t) {
		if o.GetName() == "no-such-node" {
			t.Error("a node was created")
		}
	}
	if exit := program.Stop(t); exit.Code != 0 {
		t.Errorf("exit code is %d", exit.Code)
	}
	mustLogNoError(t, program.Lines)
}
