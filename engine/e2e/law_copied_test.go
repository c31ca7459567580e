// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

const replicaSets = "replicasets.v1.apps"

// rolled is a Deployment that rolls nothing out yet.
const rolled = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"w"},"spec":{"replicas":0,
	"selector":{"matchLabels":{"app":"w"}},"template":{"metadata":{"labels":{"app":"w"}},"spec":{"containers":[
	{"name":"c","image":"i"}]}}}}`

// TestControllerThatCopiesAnnotations: the Deployment controller copies annotations to ReplicaSets at each
// look. An operator for both does not take them for its own, and does not fight.
func TestControllerThatCopiesAnnotations(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.user.Allow(t, cluster.Rule("apps", "replicasets", "*"))
	op := dsl.New("law")
	op.Scope.Namespaces = []string{s.ns}
	causes := []dsl.Cause{dsl.Create, dsl.Update}
	op.Resource(deployments, func(r *dsl.Resource) { r.On(causes, "deployment", s.Note("deployment")) })
	op.Resource(replicaSets, func(r *dsl.Resource) { r.On(causes, "set", s.Note("set")) })
	s.begin(t, op)
	mark := plane.Mark(t)
	all, sets := plane.Objects(deployments, s.ns), plane.Objects(replicaSets, s.ns)
	all.Create(t, parse(t, rolled))
	s.Await(t, 1, "deployment", "w")
	all.Await(t, "w", "to be seen by its controller", func(o *unstructured.Unstructured) bool {
		seen, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		return seen > 0
	})
	name := sets.List(t)[0].GetName()
	s.Await(t, 1, "set", name)
	all.Patch(t, "w", `{"spec":{"replicas":1}}`)
	waitFor(t, "the ReplicaSet's change to be handled", func() bool { return calls(s, name, 1) > 0 })
	if first := s.Of("set", name)[0]; first.Cause != dsl.Create {
		t.Errorf("the ReplicaSet's first call is a %s", first.Cause)
	}
	if before, after := calls(s, name, 0), calls(s, name, 1); before != 1 || after > 2 {
		t.Errorf("%d calls for the ReplicaSet as it was made, want 1, and %d as it was scaled, want 1", before, after)
	}
	// Two for the handler, and one after each copy of what was noted on the Deployment. The controller writes at the same
	// time, so some are refused first.
	if writes := plane.Writes(t, s.user.Name, mark).Of("replicasets", name).WithoutConflicts(); len(writes) > 4 {
		t.Errorf("%d writes to the ReplicaSet: %s", len(writes), writes)
	}
}

// calls returns how often the ReplicaSet was handled with so many replicas.
func calls(s *stage, name string, replicas int64) (n int) {
	for _, c := range s.Of("set", name) {
		if has, _, _ := unstructured.NestedInt64(c.Object.Object, "spec", "replicas"); has == replicas {
			n++
		}
	}
	return n
}
