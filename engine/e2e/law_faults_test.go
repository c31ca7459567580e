// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

const crds = "customresourcedefinitions.v1.apiextensions.k8s.io"

// TestResourceComesAndGoes: a CRD is missing at the start, comes, goes with its objects, and comes
// again with another scope, while the operator runs and handles works.
func TestResourceComesAndGoes(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	group := "g" + rand.String(6) + ".example.com"
	s.user.Allow(t, cluster.Rule(group, "things", "*"))
	name := "things.v1." + group
	op := s.operator(func(r *dsl.Resource) { r.OnReconcile("level", s.Note("level", nil)) })
	op.Resource(name, func(r *dsl.Resource) {
		r.On(changes, "change", s.Note("change", nil))
		r.OnDelete("farewell", s.Note("farewell", nil))
	})
	running := cluster.Run(t, op, settingsOf(s))
	thing := func(name string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": "Thing"}}
		o.SetName(name)
		return o
	}
	missing := func(when string) {
		t.Helper()
		awaitCheck(t, running, "resource/"+name, ops.Warn, "not served")
		s.works.Create(t, work("beside-"+when, "a"))
		s.Await(t, 1, "level", "beside-"+when)
	}
	serve := func(scope string) *cluster.Objects {
		t.Helper()
		crd := strings.ReplaceAll(strings.ReplaceAll(thingCRD, "GROUP", group), "Namespaced", scope)
		plane.Apply(t, "", crd)
		running.AwaitReady(t)
		if scope == "Cluster" {
			return plane.Objects(name, "")
		}
		return plane.Objects(name, s.ns)
	}
	missing("at-the-start")
	serve("Namespaced").Create(t, thing("one"))
	s.Await(t, 1, "change", "one")
	plane.Objects(crds, "").Delete(t, "things."+group)
	s.Await(t, 1, "farewell", "one")
	plane.Objects(crds, "").AwaitGone(t, "things."+group)
	missing("while-gone")
	wide := serve("Cluster")
	t.Cleanup(func() { plane.Objects(crds, "").Delete(t, "things."+group) })
	wide.Create(t, thing("two"))
	s.Await(t, 1, "change", "two")
	wide.Delete(t, "two")
	wide.AwaitGone(t, "two")
	running.Stop(t)
}

// TestRightsComeAndGo: the rights for one of two resources are taken away and given back. The other
// one does not notice.
func TestRightsComeAndGo(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	role := s.user.Allow(t, cluster.Rule("samplecontroller.k8s.io", "foos,foos/status", "*"))
	op := s.operator(func(r *dsl.Resource) { r.OnReconcile("level", s.Note("level", nil)) })
	op.Resource(foos, func(r *dsl.Resource) { r.On(changes, "change", s.Note("change", nil)) })
	running := s.begin(t, op)
	foosHere := plane.Objects(foos, s.ns)
	foosHere.Create(t, foo("before", 1))
	s.Await(t, 1, "change", "before")
	role.Revoke(t)
	s.proxy.CutWatches(cluster.On("watch", "foos"))
	check := awaitCheck(t, running, "resource/"+foos, ops.Warn, "forbidden")
	if !containsAll(check.Message, "list", "watch", "patch", s.ns) || strings.Contains(check.Message, "delete") {
		t.Errorf("the check says %q", check.Message)
	}
	foosHere.Create(t, foo("during", 1))
	for i := range 15 {
		s.works.Create(t, work(fmt.Sprint("w-", i), "a"))
	}
	for i := range 15 {
		s.Await(t, 1, "level", fmt.Sprint("w-", i))
	}
	for _, c := range running.Engine.Ready() {
		if (c.Name == check.Name) == (c.State == ops.Pass) && !cluster.OfObjects(c) {
			t.Errorf("while the rights are away, a check is %v", c)
		}
	}
	if n := len(s.Of("change", "during")); n != 0 {
		t.Error("an object was handled without rights")
	}
	role.Grant(t)
	running.AwaitReady(t)
	s.Await(t, 1, "change", "during")
	foosHere.Await(t, "during", "its base", settled)
}

// TestPanic: a handler that panics is tried again, and other objects do not notice.
func TestPanic(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	running := s.play(t, func(r *dsl.Resource) {
		r.Workers = 1
		r.On(changes, "change", s.Note("change", func(_ context.Context, r *dsl.Request) error {
			if r.Object.GetName() == "w" && r.Attempt == 1 {
				var nothing map[string]int
				nothing["x"]++
			}
			return nil
		}), dsl.WithBackoff(500*time.Millisecond, time.Second))
	})
	s.works.Create(t, work("w", "a"))
	s.works.Create(t, work("beside", "a"))
	s.works.Await(t, "beside", "its base", settled)
	s.works.Await(t, "w", "its base", settled)
	if calls := s.Of("change", "w"); len(calls) != 2 || calls[1].Attempt != 2 {
		t.Errorf("calls %v", calls)
	}
	if n := counter(t, running, "handwerk_handler_runs_total", "outcome", "panic"); n != 1 {
		t.Errorf("%v panics were counted, want 1", n)
	}
	if lines := running.With("handler panicked"); len(lines) != 1 || !strings.Contains(lines[0], "TestPanic") {
		t.Errorf("log %q", lines)
	}
}

// turn sets a field to what it is not.
func turn(r *dsl.Request, field string) {
	value := "tick"
	if was, _, _ := unstructured.NestedString(r.Object.Object, "spec", field); was == value {
		value = "tock"
	}
	r.Patch.Set("spec."+field, value)
}

// TestHotLoop: two handlers change what the other looks at, each time. The breaker stops the object
// alone, says so, and does not hold its deletion back.
func TestHotLoop(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	running := s.play(t, func(r *dsl.Resource) {
		r.On(changes, "change", s.Note("change", func(_ context.Context, r *dsl.Request) error {
			if r.Object.GetName() == "w" {
				turn(r, "round")
			}
			return nil
		}))
		r.On(changes, "rival", func(_ context.Context, r *dsl.Request) error {
			if r.Object.GetName() == "w" {
				turn(r, "more")
			}
			return nil
		})
		r.OnDelete("farewell", s.Note("farewell", nil))
	})
	s.works.Create(t, work("w", "a"))
	awaitGauge(t, running, "handwerk_breaker_open", 1)
	s.quiesce(t, "change")
	calls := len(s.Of("change", "w"))
	s.works.Patch(t, "w", `{"spec":{"round":"x"}}`)
	s.quiesce(t, "change")
	if now := len(s.Of("change", "w")); now != calls || now > 50 {
		t.Errorf("%d calls, then %d more while the object rests", calls, now-calls)
	}
	waitFor(t, "the Event", func() bool {
		return slices.ContainsFunc(plane.Objects("events.v1.events.k8s.io", s.ns).List(t), func(e unstructured.Unstructured) bool {
			return e.Object["reason"] == "Looping"
		})
	})
	s.works.Delete(t, "w")
	s.works.AwaitGone(t, "w")
	if n := len(s.Of("farewell", "w")); n != 1 {
		t.Errorf("the delete handler ran %d times", n)
	}
	awaitGauge(t, running, "handwerk_breaker_open", 0)
}

// TestBrokenAggregatedAPI: discovery is never whole, and that does not matter.
func TestBrokenAggregatedAPI(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	group := "broken" + rand.String(6) + ".example.com"
	services := plane.Objects("apiservices.v1.apiregistration.k8s.io", "")
	services.Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1." + group},
		"spec": map[string]any{
			"group": group, "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(10),
			"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": s.ns, "name": "nowhere"},
		},
	}})
	t.Cleanup(func() { services.Delete(t, "v1."+group) })
	services.Await(t, "v1."+group, "being unavailable", func(o *unstructured.Unstructured) bool {
		return cluster.Condition(o, "Available") == "False"
	})
	op := s.operator(func(r *dsl.Resource) { r.OnReconcile("level", s.Note("level", nil)) })
	op.Resource("gizmos."+group, func(r *dsl.Resource) { r.OnReconcile("never", s.Note("never", nil)) })
	op.Resource("foos.samplecontroller.k8s.io", func(r *dsl.Resource) { r.OnReconcile("foo", s.Note("foo", nil)) })
	s.user.Allow(t, cluster.Rule("samplecontroller.k8s.io", "foos,foos/status", "*"))
	running := cluster.Run(t, op, settingsOf(s))
	s.works.Create(t, work("w", "a"))
	s.Await(t, 1, "level", "w")
	plane.Objects(foos, s.ns).Create(t, foo("f", 1))
	s.Await(t, 1, "foo", "f")
	awaitCheck(t, running, "resource/gizmos."+group, ops.Warn, "")
	for _, c := range running.Engine.Ready() {
		if c.State != ops.Pass && !strings.Contains(c.Name, group) {
			t.Errorf("another check is degraded: %v", c)
		}
	}
}

// TestSlowResourceStarvesNoOther: all workers of one resource are stuck.
func TestSlowResourceStarvesNoOther(t *testing.T) {
	t.Parallel()
	s, end := newStage(t), make(chan struct{})
	s.user.Allow(t, cluster.Rule("samplecontroller.k8s.io", "foos,foos/status", "*"))
	op := s.operator(func(r *dsl.Resource) { r.OnReconcile("level", s.Note("level", nil)) })
	op.Resource(foos, func(r *dsl.Resource) {
		r.Workers = 1
		r.OnReconcile("stuck", s.Note("stuck", func(ctx context.Context, _ *dsl.Request) error {
			select {
			case <-end:
				return nil
			case <-ctx.Done():
				return errors.New("ended")
			}
		}))
	})
	s.begin(t, op)
	plane.Objects(foos, s.ns).Create(t, foo("a", 1))
	plane.Objects(foos, s.ns).Create(t, foo("b", 1))
	waitFor(t, "the worker to be stuck", func() bool { return len(s.Of("stuck", "a"))+len(s.Of("stuck", "b")) > 0 })
	s.quiesce(t, "level")
	if n := len(s.Of("stuck", "a")) + len(s.Of("stuck", "b")); n != 1 {
		t.Errorf("%d calls of the stuck handler", n)
	}
	close(end)
	s.Await(t, 1, "stuck", "a")
	s.Await(t, 1, "stuck", "b")
}
