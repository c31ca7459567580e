// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// fooSeen is what others see of an operator of Foos.
type fooSeen struct {
	// Deployment are the writes to the Deployment of one Foo, in their order; Kinds are all that the operator writes, by verb
	// and resource; AtTheEnd are the writes from the deletion of the Foo on.
	Deployment, Kinds, AtTheEnd []string
	// Objects are the Deployment and the Foo before the deletion; Foreign is somebody else's Deployment.
	Objects, Foreign string
	// Taken is the status of a Foo whose name is somebody else's.
	Taken string
	// Events are all about Foos, by type, reason and message.
	Events []string
}

// TestFooThreeWays holds that kubernetes/sample-controller is one operator here, whether it is written in Go, in Go that
// YAML calls, or in YAML alone: for the same that happens the API server sees the same requests, and people the same objects and
// Events. Conditions are left out: sample-controller has none, and in each way other parts of the engine report by them.
func TestFooThreeWays(t *testing.T) {
	t.Parallel()
	const message = `Warning ErrResourceExists Resource "taken" already exists and is not managed by Foo`
	want, first := fooSeen{ // server-side apply is patch, also of what is new
		Deployment: []string{"patch deployments 201", "patch deployments 200", "patch deployments 200", "patch deployments 201"},
		Kinds:      []string{"create events", "patch deployments", "patch events", "patch foos/status"},
		Taken:      "{}",
		Events:     []string{"Normal Synced Foo synced successfully", message},
	}, ""
	for _, way := range slices.Sorted(maps.Keys(fooRoutes())) {
		ns, user := plane.Namespace(t), plane.User("foo")
		user.AllowIn(t, ns, fooRules()...)
		mark := plane.Mark(t)
		lines := fooRoutes()[way](t, ns, user)
		s := &fooStage{ns: ns, user: user, foos: plane.Objects(foos, ns), deployments: plane.Objects(deployments, ns), lines: lines}
		got := s.live(t, mark)
		if first == "" {
			first, want.Objects, want.Foreign = way, got.Objects, got.Foreign
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want, with the objects of %s, +got):\n%s", way, first, diff)
		}
		mustLogNoError(t, lines)
	}
}

// live is the life of a Foo: made, scaled, its Deployment edited and deleted, another Foo whose name is taken, and its end.
func (s *fooStage) live(t *testing.T, mark cluster.Mark) (seen fooSeen) {
	t.Helper()
	s.settled(t, "one", 2)
	plane.Apply(t, s.ns, strings.Replace(foreignDeployment, "replicas: 1", "replicas: 0", 1)) // which is not changed then
	s.foos.Patch(t, "one", `{"spec":{"replicas":3}}`)
	s.follows(t, "one", 3)
	s.deployments.Patch(t, "one", `{"spec":{"replicas":1}}`)
	s.says(t, "put back Deployment "+s.ns+"/one: spec.replicas changed by e2e\"")
	s.deployments.Await(t, "one", "its replicas again", func(o *unstructured.Unstructured) bool { return replicas(o) == 3 && available(o) == 3 })
	uid := s.deployments.Get(t, "one").GetUID()
	s.deployments.Delete(t, "one")
	s.deployments.Await(t, "one", "another one", func(o *unstructured.Unstructured) bool { return o.GetUID() != uid && available(o) == 3 })
	s.follows(t, "one", 3)

	foreign := s.deployments.Get(t, "taken")
	s.foos.Create(t, foo("taken", 3))
	awaitEvent(t, s.ns, "taken", "ErrResourceExists", 1)
	awaitEvent(t, s.ns, "one", "Synced", 2)
	seen.Foreign = s.shown(t, foreign)
	if now := s.shown(t, s.deployments.Get(t, "taken")); now != seen.Foreign {
		t.Errorf("the foreign Deployment (-before +after):\n%s", cmp.Diff(seen.Foreign, now))
	}
	seen.Taken = s.status(t, "taken")
	seen.Objects = s.shown(t, s.deployments.Get(t, "one"), s.foos.Get(t, "one")) + s.status(t, "one")

	before := plane.Mark(t)
	s.foos.Delete(t, "one")
	s.foos.AwaitGone(t, "one")
	s.says(t, "Foo is gone, and its Deployment goes with it")
	s.deployments.AwaitGone(t, "one")
	for _, w := range plane.Writes(t, s.user.Name, before).Of("foos", "one") {
		seen.AtTheEnd = append(seen.AtTheEnd, w.String())
	}
	all, kinds := plane.Writes(t, s.user.Name, mark, "events"), map[string]bool{}
	for _, w := range all {
		if w.Resource != "configmaps" { // the register, which the account may not write here
			kinds[strings.Join(strings.Fields(w.String())[:2], " ")] = true
		}
	}
	for _, w := range all.Of("deployments", "one") {
		seen.Deployment = append(seen.Deployment, strings.Replace(w.String(), s.ns+"/one ", "", 1))
	}
	seen.Kinds, seen.Events = slices.Sorted(maps.Keys(kinds)), slices.Sorted(maps.Keys(eventsIn(t, s.ns, "Foo")))
	return seen
}

// status is what a Foo reports, but for conditions.
func (s *fooStage) status(t *testing.T, name string) string {
	t.Helper()
	status, _, _ := unstructured.NestedMap(s.foos.Get(t, name).Object, "status")
	delete(status, "conditions")
	if status == nil {
		return "{}"
	}
	return asJSON(t, status)
}

// shown is what objects say, without what is of one run or of one operator alone.
func (s *fooStage) shown(t *testing.T, objects ...*unstructured.Unstructured) string {
	t.Helper()
	for _, o := range objects {
		annotations := o.GetAnnotations()
		maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.Contains(key, ".handwerk.dev/") })
		o.SetAnnotations(annotations)
	}
	return untimed(t, s.ns, objects...)
}
