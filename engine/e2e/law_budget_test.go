// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

const (
	whole    = "patch works w 200"
	ofStatus = "patch works/status w 200"
)

// TestNoChangeNoWrite: what changes nothing that handlers want costs no write, though they run.
func TestNoChangeNoWrite(t *testing.T) {
	t.Parallel()
	again := func(t *testing.T, s *stage, object *unstructured.Unstructured) {
		client := plane.Dynamic().Resource(s.works.Name).Namespace(s.ns)
		if _, err := client.Apply(t.Context(), "w", object, metav1.ApplyOptions{FieldManager: "somebody", Force: true}); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		disturb func(t *testing.T, s *stage, running *cluster.Running)
		// calls are those that the disturbance makes.
		calls []string
	}{
		"a restart": {func(t *testing.T, s *stage, running *cluster.Running) {
			running.Stop(t)
			s.play(t, frugal(s, 0))
		}, []string{"level resume a"}},
		"watches that end": {func(_ *testing.T, s *stage, _ *cluster.Running) {
			s.proxy.CutWatches(cluster.On("watch", "*"))
		}, nil},
		"a relist": {func(t *testing.T, s *stage, _ *cluster.Running) {
			before := len(s.proxy.Requests(listed("works")))
			s.proxy.ExpireWatches(cluster.On("watch", "*"))
			s.proxy.Await(t, before+1, listed("works"))
		}, nil},
		"an update to the same": {func(t *testing.T, s *stage, _ *cluster.Running) {
			s.works.Patch(t, "w", `{"spec":{"value":"a"}}`)
		}, nil},
		"managedFields of somebody else": {func(t *testing.T, s *stage, _ *cluster.Running) {
			before := s.works.Get(t, "w").GetResourceVersion()
			again(t, s, work("w", "a"))
			if s.works.Get(t, "w").GetResourceVersion() == before {
				t.Error("the apply changed nothing")
			}
		}, nil},
		"status of somebody else": {func(t *testing.T, s *stage, _ *cluster.Running) {
			s.works.Patch(t, "w", `{"status":{"theirs":"x"}}`, "status")
		}, nil},
		"a finalizer and an owner of somebody else": {func(t *testing.T, s *stage, _ *cluster.Running) {
			s.works.Patch(t, "w", `{"metadata":{"finalizers":["law.handwerk.dev/finalizer","example.com/theirs"]}}`)
			t.Cleanup(func() { s.works.Patch(t, "w", `{"metadata":{"finalizers":null}}`) })
		}, nil},
		"kubectl's annotation": {func(t *testing.T, s *stage, _ *cluster.Running) {
			s.works.Patch(t, "w", `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"x"}}}`)
		}, nil},
		"a child's field of somebody else": {func(t *testing.T, s *stage, _ *cluster.Running) {
			s.maps.Patch(t, "w-child", `{"data":{"theirs":"x"}}`)
			s.Await(t, 2, "level", "w")
		}, []string{"level child a"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			running := s.play(t, frugal(s, 0))
			s.works.Create(t, work("w", "a"))
			s.works.Await(t, "w", "its base", settled)
			s.quiesce(t, "level")
			mark, before := plane.Mark(t), len(s.said("", "w"))
			test.disturb(t, s, running)
			s.quiesce(t, "level")
			if diff := cmp.Diff([]string(nil), s.writes(t, mark, "w")); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.calls, append([]string(nil), s.said("", "w")[before:]...)); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// TestResyncDoesNotWrite: the handlers run again and again, and nothing is sent.
func TestResyncDoesNotWrite(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.play(t, frugal(s, 100*time.Millisecond))
	s.works.Create(t, work("w", "a"))
	s.works.Await(t, "w", "its base", settled)
	s.Await(t, 1, "tick", "w")
	mark := plane.Mark(t)
	s.Await(t, 8, "tick", "w")
	if diff := cmp.Diff([]string(nil), s.writes(t, mark, "w")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// TestWhatTheServerDropsIsSentOnce: a field that the server does not keep is not sent again each time
// the handler runs, but is when its value is another.
func TestWhatTheServerDropsIsSentOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	op := s.operator(func(r *dsl.Resource) { r.OnReconcile("level", s.Note("level", nil)) })
	op.Resource(configMaps, func(r *dsl.Resource) {
		r.Resync = 100 * time.Millisecond
		r.OnReconcile("tick", s.Note("tick", func(_ context.Context, r *dsl.Request) error {
			value, _, err := unstructured.NestedString(r.Object.Object, "data", "value")
			r.Patch.SetStatus("value", value)
			return err
		}))
	})
	s.begin(t, op)
	mark := plane.Mark(t)
	s.maps.Create(t, &unstructured.Unstructured{Object: configMap("w", "a")})
	s.Await(t, 4, "tick", "w")
	s.maps.Patch(t, "w", `{"data":{"value":"b"}}`)
	before := len(s.Of("tick", "w"))
	s.Await(t, before+4, "tick", "w")
	const dropped = "patch configmaps w 200"
	if diff := cmp.Diff([]string{dropped, dropped}, s.writes(t, mark, "w")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// frugal has handlers of every kind, that want the same each time.
func frugal(s *stage, resync time.Duration) func(*dsl.Resource) {
	return func(r *dsl.Resource) {
		r.Resync = resync
		r.Owns(configMaps)
		r.On(changes, "change", s.Note("change", nil))
		if resync > 0 {
			r.OnResync("tick", s.Note("tick", nil))
		}
		r.OnDelete("farewell", s.Note("farewell", nil))
		r.OnReconcile("level", s.Note("level", func(ctx context.Context, r *dsl.Request) error {
			r.Patch.SetStatus("value", spec(r.Object, "value"))
			r.Patch.SetCondition("Ready", metav1.ConditionTrue, "Done", "it is done")
			_, err := r.Children.Apply(ctx, configMap(r.Object.GetName()+"-child", spec(r.Object, "value")))
			return err
		}))
	}
}

// listed matches the requests by which an informer begins again, in one answer or streamed.
func listed(resource string) cluster.Match {
	return func(r cluster.Request) bool {
		streamed := r.Verb == "watch" && containsAll(r.URI, "sendInitialEvents=true")
		return r.Resource == resource && (r.Verb == "list" || streamed)
	}
}

// TestWriteBudgets follows an object through its life, and counts the requests for each step.
func TestWriteBudgets(t *testing.T) {
	t.Parallel()
	report := func(_ context.Context, r *dsl.Request) error {
		r.Patch.SetStatus("value", spec(r.Object, "value"))
		return nil
	}
	failing := func(after time.Duration, times int) dsl.Func {
		return func(_ context.Context, r *dsl.Request) error {
			if r.Attempt <= times && r.Object.GetName() == "w" {
				return dsl.Temporary(errors.New("not yet"), after)
			}
			return nil
		}
	}
	handled := func(o *unstructured.Unstructured) bool { return handledWith(o, spec(o, "value")) }
	observed := func(o *unstructured.Unstructured) bool {
		n, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		return n == o.GetGeneration() && handled(o)
	}
	reported := func(o *unstructured.Unstructured) bool { return status(o, "value") == spec(o, "value") }
	both := func(o *unstructured.Unstructured) bool { return handled(o) && reported(o) }
	tests := map[string]struct {
		define                 func(s *stage, r *dsl.Resource)
		done                   func(*unstructured.Unstructured) bool
		create, update, delete []string
		calls                  int // for the creation
	}{
		"one handler": {func(s *stage, r *dsl.Resource) {
			r.On(changes, "h", s.Note("h", nil))
		}, handled, []string{whole}, []string{whole}, nil, 1},
		"one that sets status": {func(s *stage, r *dsl.Resource) {
			r.On(changes, "h", s.Note("h", report))
		}, both, []string{ofStatus, whole}, []string{ofStatus, whole}, nil, 1},
		"one that sets status, with observedGeneration": {func(s *stage, r *dsl.Resource) {
			r.On(changes, "h", s.Note("h", report), dsl.Needs("patch", "self/status"))
		}, observed, []string{ofStatus, whole}, []string{ofStatus, whole}, nil, 1},
		"five that set status": {func(s *stage, r *dsl.Resource) {
			for i := range 5 {
				r.On(changes, fmt.Sprint("h", i), s.Note("h", func(_ context.Context, r *dsl.Request) error {
					r.Patch.SetStatus(fmt.Sprint("of", i), spec(r.Object, "value"))
					return report(t.Context(), r)
				}))
			}
		}, both, []string{ofStatus, whole}, []string{ofStatus, whole}, nil, 5},
		"five": {func(s *stage, r *dsl.Resource) {
			for i := range 5 {
				r.On(changes, fmt.Sprint("h", i), s.Note("h", nil))
			}
		}, handled, []string{whole}, []string{whole}, nil, 5},
		"a delete handler, too": {func(s *stage, r *dsl.Resource) {
			r.On(changes, "h", s.Note("h", nil))
			r.OnDelete("farewell", s.Note("farewell", nil))
		}, handled, []string{whole, whole}, []string{whole}, []string{whole}, 1},
		"a delete handler that opted out": {func(s *stage, r *dsl.Resource) {
			r.On(changes, "h", s.Note("h", nil))
			r.OnDelete("farewell", s.Note("farewell", nil), dsl.NoFinalizer())
		}, handled, []string{whole}, []string{whole}, nil, 1},
		"a level-triggered handler that sets status": {func(s *stage, r *dsl.Resource) {
			r.OnReconcile("h", s.Note("h", report))
		}, reported, []string{ofStatus}, []string{ofStatus}, nil, 1},
		"two retries that are due soon": {func(s *stage, r *dsl.Resource) {
			r.On(changes, "h", s.Note("h", failing(10*time.Millisecond, 2)))
		}, handled, []string{whole}, []string{whole}, nil, 3},
		"three; the last one is reported in a condition and taken back": {func(s *stage, r *dsl.Resource) {
			r.On(changes, "h", s.Note("h", failing(10*time.Millisecond, 3)))
		}, handled, []string{ofStatus, ofStatus, whole}, []string{ofStatus, ofStatus, whole}, nil, 4},
		"a retry that is due later": {func(s *stage, r *dsl.Resource) {
			later := failing(10500*time.Millisecond, 1)
			r.On(changes, "h", s.Note("h", func(ctx context.Context, r *dsl.Request) error {
				if spec(r.Object, "value") == "b" {
					return nil // one such wait is enough
				}
				return later(ctx, r)
			}))
		}, handled, []string{whole, whole}, []string{whole}, nil, 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.play(t, func(r *dsl.Resource) { test.define(s, r) })
			check := func(step string, mark cluster.Mark, want []string) {
				t.Helper()
				if diff := cmp.Diff(want, s.writes(t, mark, "w")); diff != "" {
					t.Errorf("writes after the %s (-want +got):\n%s", step, diff)
				}
			}
			mark := plane.Mark(t)
			s.works.Create(t, work("w", "a"))
			s.works.Await(t, "w", "its handling", test.done)
			s.quiesce(t, "h")
			check("creation", mark, test.create)
			if n := len(s.Of("h", "w")); n != test.calls {
				t.Errorf("%d calls, want %d", n, test.calls)
			}
			mark = plane.Mark(t)
			s.works.Patch(t, "w", `{"spec":{"value":"b"}}`)
			s.works.Await(t, "w", "its handling", test.done)
			s.quiesce(t, "h")
			check("update", mark, test.update)
			mark = plane.Mark(t)
			s.works.Delete(t, "w")
			s.works.AwaitGone(t, "w")
			s.quiesce(t, "h")
			check("deletion", mark, test.delete)
		})
	}
}
