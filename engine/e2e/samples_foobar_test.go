// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/samples/foobar/foobar"
)

// TestFooBarSample walks one Foo from wrong to right and back, whichever way its operator is
// written.
func TestFooBarSample(t *testing.T) {
	t.Parallel()
	for name, start := range routes("foobar", foobar.Operator) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, user := plane.Namespace(t), plane.User("foobar")
			user.AllowIn(t, ns,
				cluster.Rule("foo.example.com", "foos", "get", "list", "watch"),
				cluster.Rule("foo.example.com", "foos/status", "patch"), eventRule())
			lines := start(t, ns, user)
			t.Cleanup(func() { mustLogNoError(t, lines) })
			fooBarTurns(t, plane.Objects("foos.v1.foo.example.com", ns), user, lines)
		})
	}
}

func fooBarTurns(t *testing.T, foobars *cluster.Objects, user *cluster.User, lines *cluster.Lines) {
	const again = "handler will be tried again"
	foobars.Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "foo.example.com/v1", "kind": "Foo",
		"metadata": map[string]any{"name": "f"}, "spec": map[string]any{"value": "baz"},
	}})
	wrong := awaitReady(t, foobars, "False")
	if diff := cmp.Diff(readyCondition{"False", "FooNotBar", `The value must be "bar".`, 1, wrong.Since}, wrong); diff != "" {
		t.Errorf("condition of a wrong Foo (-want +got):\n%s", diff)
	}

	// It is tried again with growing pauses, which alone changes nothing. The line of a try comes when all that came of the try
	// is done.
	lines.AwaitTimes(t, 1, again)
	wrong = backdate(t, foobars, wrong)
	mark := plane.Mark(t)
	lines.AwaitTimes(t, 2, again)
	if got := plane.Writes(t, user.Name, mark); len(got) != 0 {
		t.Errorf("writes while the value stays wrong:\n%v", got)
	}
	foobars.Patch(t, "f", `{"spec":{"value":"qux"}}`)
	still := awaitReady(t, foobars, "False", func(c readyCondition) bool { return c.Generation == 2 })
	if !still.Since.Equal(wrong.Since) {
		t.Errorf("the transition time moved from %s to %s, and the status did not", wrong.Since, still.Since)
	}

	foobars.Patch(t, "f", `{"spec":{"value":"bar"}}`)
	right := awaitReady(t, foobars, "True")
	if diff := cmp.Diff(readyCondition{"True", "FooIsBar", `The value is "bar".`, 3, right.Since}, right); diff != "" {
		t.Errorf("condition of a right Foo (-want +got):\n%s", diff)
	}
	if !right.Since.After(still.Since) {
		t.Errorf("the transition time is %s, and was %s before the status changed", right.Since, still.Since)
	}

	right = backdate(t, foobars, right)
	mark = plane.Mark(t)
	foobars.Patch(t, "f", `{"spec":{"value":"baz"}}`)
	wrong = awaitReady(t, foobars, "False")
	if !wrong.Since.After(right.Since) || wrong.Reason != "FooNotBar" {
		t.Errorf("condition of a Foo that is wrong again: %+v, after %s", wrong, right.Since)
	}
	foobars.Patch(t, "f", `{"spec":{"value":"bar"}}`)
	awaitReady(t, foobars, "True")
	if got := plane.Writes(t, user.Name, mark); len(got) != 2 {
		t.Errorf("writes for two turns, want two:\n%v", got)
	}
}

// backdate makes a Foo's condition an hour older: the times of conditions have whole seconds, so one
// that moves shows only when it is not new.
func backdate(t *testing.T, foobars *cluster.Objects, c readyCondition) readyCondition {
	t.Helper()
	c.Since = c.Since.Add(-time.Hour)
	foobars.Patch(t, "f", asJSON(t, map[string]any{"status": map[string]any{"conditions": []metav1.Condition{{
		Type: "Ready", Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
		ObservedGeneration: c.Generation, LastTransitionTime: metav1.NewTime(c.Since),
	}}}}), "status")
	return c
}

// readyCondition is a condition Ready.
type readyCondition struct {
	Status, Reason, Message string
	Generation              int64
	Since                   time.Time
}

// awaitReady waits for a condition Ready of this status, for which all of met hold.
func awaitReady(t *testing.T, foobars *cluster.Objects, status string, met ...func(readyCondition) bool) (found readyCondition) {
	t.Helper()
	foobars.Await(t, "f", "condition Ready "+status, func(o *unstructured.Unstructured) bool {
		var all struct {
			Status struct {
				Conditions []metav1.Condition `json:"conditions"`
			} `json:"status"`
		}
		decode(t, o, &all)
		for _, c := range all.Status.Conditions {
			if c.Type != "Ready" || string(c.Status) != status {
				continue
			}
			found = readyCondition{string(c.Status), c.Reason, c.Message, c.ObservedGeneration, c.LastTransitionTime.Time}
			for _, m := range met {
				if !m(found) {
					return false
				}
			}
			return true
		}
		return false
	})
	return found
}
