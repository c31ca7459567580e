// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

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

// TestTransformations holds that they see what is there, that nobody's entry is lost, and that they cost no request more.
func TestTransformations(t *testing.T) {
	var s *stage
	hosts := func(want ...any) {
		s.t.Helper()
		s.Settle()
		got, _, _ := unstructured.NestedSlice(s.web().Object, "spec", "hosts")
		if diff := cmp.Diff(want, got); diff != "" {
			s.t.Errorf("hosts (-want +got):\n%s", diff)
		}
	}
	adds := func(host string, more ...dsl.Func) dsl.Func {
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
	once := func(do func()) dsl.Func {
		done := false
		return func(context.Context, *dsl.Request) error {
			if !done {
				done = true
				do()
			}
			return nil
		}
	}
	tests := map[string]scenario{
		"entries of two handlers and of somebody else are all there, with one request": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnCreate("one", adds("one", func(_ context.Context, r *dsl.Request) error {
					r.Patch.SetStatus("hosts", 1)
					return nil
				}))
				foo.OnCreate("two", adds("two"))
			}, func(s *stage) {
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {hosts: [theirs]}}`)
				s.Launch()
				s.Wrote("patch foos/status default/web", "patch foos default/web")
				hosts("theirs", "one", "two")
				s.Process.Restart()
				s.Wrote()
			},
		},
		"after somebody wrote beside what the handler looks at, they run again and the handler does not": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "one", j.Note("one", adds("one", once(func() {
					s.set([]any{"theirs"}, "spec", "hosts")
				}))), dsl.Field("spec.size"))
			}, func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("one create")
				hosts("theirs", "one")
				s.Advance(time.Hour)
				s.Called()
			},
		},
		"after somebody changed what the handler looks at, the handler runs again": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "one", j.Note("one", adds("one", once(func() { s.set([]any{"theirs"}, "spec", "hosts") }))))
			}, func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("one create", "one create")
				hosts("theirs", "one")
			},
		},
		"one with nothing to do asks for nothing": {
			func(foo *dsl.Resource, j *journal) { foo.OnReconcile("one", j.Note("one", adds("one"))) },
			func(s *stage) {
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {hosts: [one]}}`)
				s.Launch()
				s.Called("one resume")
				s.Wrote()
				hosts("one")
			},
		},
		"an error of one is the handler's; the rest of what that wanted is sent": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("one", j.Note("one", func(_ context.Context, r *dsl.Request) error {
					r.Patch.SetStatus("tried", r.Attempt)
					r.Patch.Transform(withHost("one"))
					r.Patch.JSON(dsl.JSONOp{Op: "test", Path: "/spec/size", Value: 2})
					return nil
				}), dsl.Retries(1))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Advance(time.Minute)
				s.Called("one create", "one create 2")
				if tried, _, _ := unstructured.NestedInt64(s.web().Object, "status", "tried"); tried != 2 || s.web().Object["spec"].(map[string]any)["hosts"] != nil {
					s.t.Errorf("the object is %v", s.web().Object)
				}
				if events := s.Events(); len(events) != 1 || !strings.Contains(events[0].Note, "testing value /spec/size failed") {
					s.t.Errorf("events %+v", events)
				}
				s.size(2)
				s.Called("one update")
				hosts("one")
			},
		},
		"one that fails on what somebody wrote meanwhile has its handler run again": {
			func(foo *dsl.Resource, j *journal) {
				change := once(func() { s.set("blue", "spec", "color") })
				foo.On(both(), "one", j.Note("one", func(ctx context.Context, r *dsl.Request) error {
					r.Patch.JSON(dsl.JSONOp{Op: "test", Path: "/spec/color", Value: r.Object.Object["spec"].(map[string]any)["color"]},
						dsl.JSONOp{Op: "add", Path: "/spec/hosts", Value: []string{"one"}})
					return change(ctx, r)
				}), dsl.Field("spec.size"))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("one create", "one create")
				hosts("one")
			},
		},
		"the operator's own finalizer stays": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "one", j.Note("one", func(_ context.Context, r *dsl.Request) error {
					r.Patch.Transform(func(o *unstructured.Unstructured) error {
						o.SetFinalizers([]string{"example.com/ours"})
						o.SetAnnotations(map[string]string{"note": "x"})
						return nil
					})
					return nil
				}), dsl.NoOld())
				foo.OnDelete("farewell", j.Note("farewell"))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("one create")
				s.finalizers("example.com/ours", finalizer)
				s.size(2)
				s.Called("one update")
				s.finalizers("example.com/ours", finalizer)
				s.keeps("generation", "handlers", "handwerk", "uid")
				if note := s.web().GetAnnotations()["note"]; note != "x" {
					s.t.Errorf("the annotation is %q", note)
				}
			},
		},
	}
	for name, test := range tests {
		play := test.play
		test.play = func(of *stage) { s = of; play(of) }
		t.Run(name, func(t *testing.T) { perform(t, test) })
	}
}
