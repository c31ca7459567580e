// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package writes_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// transformsLater wants a host by a transformation that fails the first time.
func transformsLater() dsl.Func {
	failed := false
	return func(_ context.Context, r *dsl.Request) error {
		r.Patch.Transform(func(o *unstructured.Unstructured) error {
			if !failed {
				failed = true
				return scene.ErrAgain
			}
			return withHost("one")(o)
		})
		return nil
	}
}

// TestATransformationThatFailsIsRepeated holds that steps and sub-handlers whose changes could not be made are not through.
func TestATransformationThatFailsIsRepeated(t *testing.T) {
	minute := dsl.Temporary(scene.ErrAgain, time.Minute)
	for name, fn := range map[string]func(j *kit.Journal) dsl.Func{
		"of a sub-handler": func(j *kit.Journal) dsl.Func {
			return scene.DeclaresSubHandlers(j, map[string]dsl.Func{"a": transformsLater()}, nil, "a", "b")
		},
		"of a sub-handler beside one that is to be tried again": func(j *kit.Journal) dsl.Func {
			return scene.DeclaresSubHandlers(j, map[string]dsl.Func{"a": transformsLater(), "b": scene.FailsFirst(1, minute)}, nil, "a", "b")
		},
		"of a step":                       func(j *kit.Journal) dsl.Func { return dsl.Steps(transformsLater(), j.Note("two")) },
		"of a step before one that fails": func(*kit.Journal) dsl.Func { return dsl.Steps(transformsLater(), scene.FailsFirst(1, minute)) },
	} {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{
				Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnCreate("all", fn(j)) },
				Play: func(s *scene.Stage) {
					s.Launch()
					s.Create(scene.Web)
					if got := scene.ValueAt(s.Web(), "spec.hosts"); got != nil {
						t.Fatalf("hosts %v", got)
					}
					s.Advance(time.Hour)
					if diff := cmp.Diff([]any{"one"}, scene.ValueAt(s.Web(), "spec.hosts")); diff != "" {
						t.Errorf("hosts (-want +got):\n%s", diff)
					}
				},
			})
		})
	}
}

// withHost adds an entry to a list that others add to, unless it is there.
func withHost(host string) dsl.Transformation {
	return func(o *unstructured.Unstructured) error {
		list, _, err := unstructured.NestedSlice(o.Object, "spec", "hosts")
		if err != nil || slices.Contains(list, any(host)) {
			return err
		}
		return unstructured.SetNestedSlice(o.Object, append(list, host), "spec", "hosts")
	}
}

// addsHost returns a handler that adds a host by a transformation, and does more.
func addsHost(host string, more ...dsl.Func) dsl.Func {
	return func(ctx context.Context, r *dsl.Request) error {
		r.Patch.Transform(withHost(host))
		for _, do := range more {
			if err := do(ctx, r); err != nil {
				return err
			}
		}
		return nil
	}
}

// doesOnce returns a handler that does something at its first call.
func doesOnce(do func()) dsl.Func {
	done := false
	return func(context.Context, *dsl.Request) error {
		if !done {
			done = true
			do()
		}
		return nil
	}
}

// TestTransformationsKeepEntriesOfOthers holds that they see what is there, that no entry is lost, and that they cost
// no request more.
func TestTransformationsKeepEntriesOfOthers(t *testing.T) {
	var s *scene.Stage
	hosts := func(want ...any) {
		s.T.Helper()
		s.Settle()
		got, _, _ := unstructured.NestedSlice(s.Web().Object, "spec", "hosts")
		if diff := cmp.Diff(want, got); diff != "" {
			s.T.Errorf("hosts (-want +got):\n%s", diff)
		}
	}
	tests := map[string]scene.Scenario{
		"entries of two handlers and of somebody else are all there, with one request": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("one", addsHost("one", func(_ context.Context, r *dsl.Request) error {
					r.Patch.SetStatus("hosts", 1)
					return nil
				}))
				foo.OnCreate("two", addsHost("two"))
			}, Play: func(s *scene.Stage) {
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {hosts: [theirs]}}`)
				s.Launch()
				s.Wrote("patch foos/status default/web", "patch foos default/web")
				hosts("theirs", "one", "two")
				s.Process.Restart()
				s.Wrote()
			},
		},
		"after somebody wrote beside what the handler looks at, they run again and the handler does not": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "one", j.Note("one", addsHost("one", doesOnce(func() {
					s.Set([]any{"theirs"}, "spec", "hosts")
				}))), dsl.Field("spec.size"))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("one create")
				hosts("theirs", "one")
				s.Advance(time.Hour)
				s.Called()
			},
		},
		"after somebody changed what the handler looks at, the handler runs again": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "one", j.Note("one", addsHost("one", doesOnce(func() { s.Set([]any{"theirs"}, "spec", "hosts") }))))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("one create", "one create")
				hosts("theirs", "one")
			},
		},
		"one with nothing to do asks for nothing": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnReconcile("one", j.Note("one", addsHost("one"))) },
			Play: func(s *scene.Stage) {
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {hosts: [one]}}`)
				s.Launch()
				s.Called("one resume")
				s.Wrote()
				hosts("one")
			},
		},
		"an error of one is the handler's; the rest of what that wanted is sent": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("one", j.Note("one", func(_ context.Context, r *dsl.Request) error {
					r.Patch.SetStatus("tried", r.Attempt)
					r.Patch.Transform(withHost("one"))
					r.Patch.JSON(dsl.JSONOp{Op: "test", Path: "/spec/size", Value: 2})
					return nil
				}), dsl.Retries(1))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Minute)
				s.Called("one create", "one create 2")
				if tried, _, _ := unstructured.NestedInt64(s.Web().Object, "status", "tried"); tried != 2 || s.Web().Object["spec"].(map[string]any)["hosts"] != nil {
					s.T.Errorf("the object is %v", s.Web().Object)
				}
				if events := s.Events(); len(events) != 1 || !strings.Contains(events[0].Note, "testing value /spec/size failed") {
					s.T.Errorf("events %+v", events)
				}
				s.Resize(2)
				s.Called("one update")
				hosts("one")
			},
		},
		"one that fails on what somebody wrote meanwhile has its handler run again": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				change := doesOnce(func() { s.Set("blue", "spec", "color") })
				foo.On(scene.CreateAndUpdate(), "one", j.Note("one", func(ctx context.Context, r *dsl.Request) error {
					r.Patch.JSON(dsl.JSONOp{Op: "test", Path: "/spec/color", Value: r.Object.Object["spec"].(map[string]any)["color"]},
						dsl.JSONOp{Op: "add", Path: "/spec/hosts", Value: []string{"one"}})
					return change(ctx, r)
				}), dsl.Field("spec.size"))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("one create", "one create")
				hosts("one")
			},
		},
		"the operator's own finalizer stays": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "one", j.Note("one", func(_ context.Context, r *dsl.Request) error {
					r.Patch.Transform(func(o *unstructured.Unstructured) error {
						o.SetFinalizers([]string{"example.com/ours"})
						o.SetAnnotations(map[string]string{"note": "x"})
						return nil
					})
					return nil
				}), dsl.NoOld())
				foo.OnDelete("farewell", j.Note("farewell"))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("one create")
				s.WantFinalizers("example.com/ours", scene.Finalizer)
				s.Resize(2)
				s.Called("one update")
				s.WantFinalizers("example.com/ours", scene.Finalizer)
				s.WantStoredState("generation", "handlers", "handwerk", "uid")
				if note := s.Web().GetAnnotations()["note"]; note != "x" {
					s.T.Errorf("the annotation is %q", note)
				}
			},
		},
	}
	for name, test := range tests {
		play := test.Play
		test.Play = func(of *scene.Stage) { s = of; play(of) }
		t.Run(name, func(t *testing.T) { scene.Play(t, test) })
	}
}
