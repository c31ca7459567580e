// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// What operator-lib says, word by word.
const (
	trying  = `"msg":"Trying to become the leader"`
	waiting = `"msg":"Not the leader. Waiting."`
	became  = `"msg":"Became the leader."`
)

// TestLeaderForLife has a Pod for each process, though none runs in it. Rights are those of one
// namespace only.
func TestLeaderForLife(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	stage := stageIn(ns)
	pods, locks := plane.Objects("pods.v1", ns), plane.Objects(leases, ns)
	all := contenders(t, ns, forLife, 3)
	for _, c := range all {
		createPod(t, pods, c.pod)
	}
	first, others := all[0], all[1:]
	mark := plane.Mark(t)
	first.start(t)
	first.Await(t, trying)
	first.Await(t, became)
	mustBelongTo(t, locks, pods, first)
	for _, c := range others {
		c.start(t)
		c.Await(t, trying)
		c.Await(t, waiting)
		c.awaitStandby(t)
	}
	stage.settled(t, "a", 1)

	// The lock stays through ends of the process, in good order and not.
	uid := locks.Get(t, lock).GetUID()
	for _, end := range []func(){func() { first.Stop(t) }, first.Kill} {
		end()
		stage.foos.Patch(t, "a", `{"spec":{"replicas":2}}`)
		first.start(t)
		first.Await(t, became)
		stage.follows(t, "a", 2)
		stage.foos.Patch(t, "a", `{"spec":{"replicas":1}}`)
		stage.follows(t, "a", 1)
		if lines := first.With(waiting); len(lines) != 0 {
			t.Errorf("the owner had to wait for its own lock: %v", lines)
		}
	}
	if now := locks.Get(t, lock).GetUID(); now != uid {
		t.Errorf("the lock is another one: %s, and was %s", now, uid)
	}
	mustNotHaveWritten(t, mark, others...)

	// It goes with the Pod.
	first.Kill()
	pods.Delete(t, first.pod)
	second, others, _ := awaitLeader(t, ns, others...)
	second.Await(t, became)
	mustBelongTo(t, locks, pods, second)
	stage.foos.Patch(t, "a", `{"spec":{"replicas":3}}`)
	stage.follows(t, "a", 3)
	mustNotHaveWritten(t, mark, others...)
	for _, c := range others {
		if lines := c.With(waiting); len(lines) != 1 {
			t.Errorf("%s says %d times that it waits", c.pod, len(lines))
		}
	}

	// With no process left, only garbage collection can take the lock away.
	for _, c := range others {
		c.Stop(t)
	}
	if exit := second.Stop(t); exit.Code != 0 {
		t.Errorf("exit code is %d", exit.Code)
	}
	mustBelongTo(t, locks, pods, second)
	pods.Delete(t, second.pod)
	locks.AwaitGone(t, lock)
	for _, c := range all {
		mustLogNoError(t, c.Lines)
	}
}

// createPod makes a Pod and waits until it runs.
func createPod(t *testing.T, pods *cluster.Objects, name string) {
	t.Helper()
	pods.Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "operator", "image": "operator"}}},
	}})
	pods.Await(t, name, "phase Running", func(o *unstructured.Unstructured) bool {
		phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
		return phase == "Running"
	})
}

// mustBelongTo holds that the lock goes with the contender's Pod.
func mustBelongTo(t *testing.T, locks, pods *cluster.Objects, c *contender) {
	t.Helper()
	want := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: c.pod, UID: pods.Get(t, c.pod).GetUID()}}
	if diff := cmp.Diff(want, locks.Get(t, lock).GetOwnerReferences()); diff != "" {
		t.Errorf("the lock's owners (-want +got):\n%s", diff)
	}
}
