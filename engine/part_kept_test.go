// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// transformsLater wants a host by a transformation that fails the first time.
func transformsLater() dsl.Func {
	failed := false
	return func(_ context.Context, r *dsl.Request) error {
		r.Patch.Transform(func(o *unstructured.Unstructured) error {
			if !failed {
				failed = true
				return errAgain
			}
			return withHost("one")(o)
		})
		return nil
	}
}

// TestATransformationThatFailsIsMadeUpFor holds that steps and sub-handlers whose changes could not be made are not through.
func TestATransformationThatFailsIsMadeUpFor(t *testing.T) {
	minute := dsl.Temporary(errAgain, time.Minute)
	for name, fn := range map[string]func(j *journal) dsl.Func{
		"of a sub-handler": func(j *journal) dsl.Func {
			return inParts(j, map[string]dsl.Func{"a": transformsLater()}, nil, "a", "b")
		},
		"of a sub-handler beside one that is to be tried again": func(j *journal) dsl.Func {
			return inParts(j, map[string]dsl.Func{"a": transformsLater(), "b": failsFirst(1, minute)}, nil, "a", "b")
		},
		"of a step":                       func(j *journal) dsl.Func { return dsl.Steps(transformsLater(), j.Note("two")) },
		"of a step before one that fails": func(*journal) dsl.Func { return dsl.Steps(transformsLater(), failsFirst(1, minute)) },
	} {
		t.Run(name, func(t *testing.T) {
			perform(t, scenario{
				func(foo *dsl.Resource, j *journal) { foo.OnCreate("all", fn(j)) },
				func(s *stage) {
					s.Launch()
					s.Create(web)
					if got := value(s.web(), "spec.hosts"); got != nil {
						t.Fatalf("hosts %v", got)
					}
					s.Advance(time.Hour)
					if diff := cmp.Diff([]any{"one"}, value(s.web(), "spec.hosts")); diff != "" {
						t.Errorf("hosts (-want +got):\n%s", diff)
					}
				},
			})
		})
	}
}

// works is a handler that takes some time, and heeds the end of its own.
func works(d time.Duration) dsl.Func {
	return func(ctx context.Context, r *dsl.Request) error {
		select {
		case <-time.After(d):
			r.Result("done")
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// TestSubHandlersThatAreThroughStaySo holds that neither the end of their handler's time nor what comes in the end takes back
// what they have done.
func TestSubHandlersThatAreThroughStaySo(t *testing.T) {
	slow := map[string]dsl.Func{"a": works(4 * time.Second), "b": works(4 * time.Second), "c": works(4 * time.Second)}
	scenarios(t, map[string]scenario{
		"when its time is over, those that are through do not run again, and the one that it cut off has lost no attempt": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnCreate("all", inParts(j, slow, map[string][]dsl.Option{"c": {dsl.Retries(0)}}, "a", "b", "c"), dsl.Timeout(10*time.Second))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Advance(time.Hour)
				s.Called("all/a create 1", "all/b create 1", "all/c create 1", "all/c create 1")
				want := map[string]any{"all/a": "done", "all/b": "done", "all/c": "done"}
				if diff := cmp.Diff(want, s.web().Object["status"]); diff != "" {
					s.t.Errorf("status (-want +got):\n%s", diff)
				}
			},
		},
		"so it is one level deeper": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnCreate("all", inParts(j, map[string]dsl.Func{"x": inParts(j, slow, nil, "a", "b", "c")}, map[string][]dsl.Option{"x": {dsl.Timeout(6 * time.Second)}}, "x"))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Advance(time.Hour)
				s.Called("all/x create 1", "all/x/a create 1", "all/x/b create 1", "all/x create 2", "all/x/b create 1", "all/x/c create 1",
					"all/x create 3", "all/x/c create 1")
			},
		},
		"when what comes in the end panics, it alone runs again, and nothing that it wanted counts": {
			func(foo *dsl.Resource, j *journal) {
				torn := false
				parts := inParts(j, map[string]dsl.Func{"a": works(0)}, nil, "a", "b")
				foo.OnCreate("all", func(ctx context.Context, r *dsl.Request) error {
					r.Then(func(ctx context.Context, r *dsl.Request) error {
						if j.Add("then"); !torn {
							torn = true
							r.Patch.SetStatus("torn", true)
							return panics(ctx, r)
						}
						return nil
					})
					return parts(ctx, r)
				})
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("all/a create 1", "all/b create 1", "then")
				s.Advance(time.Hour)
				s.Called("then")
				if diff := cmp.Diff(map[string]any{"all/a": "done"}, s.web().Object["status"]); diff != "" {
					s.t.Errorf("status (-want +got):\n%s", diff)
				}
			},
		},
	})
}

// TestSubHandlersOfSteps holds that those of the last step are declared until they are through, and others fail for good.
func TestSubHandlersOfSteps(t *testing.T) {
	minute := dsl.Temporary(errAgain, time.Minute)
	scenarios(t, map[string]scenario{
		"those of the last step": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnCreate("all", dsl.Steps(j.Note("first"), inParts(j, map[string]dsl.Func{"b": failsFirst(1, minute)}, nil, "a", "b")))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("first create", "all/a create 1", "all/b create 1")
				s.Advance(time.Minute)
				s.Called("all/b create 2")
				s.Advance(time.Hour)
				s.Called()
			},
		},
		"those of another one": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnCreate("all", dsl.Steps(inParts(j, nil, nil, "a"), j.Note("last")))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called()
				if events := s.Events(); len(events) != 1 || !strings.Contains(events[0].Note, "step 1 of 2: it declares sub-handlers, which only the last step can") {
					s.t.Errorf("events %+v", events)
				}
			},
		},
	})
}

// TestSubHandlersThatAreDeclaredTooLate holds that the handler fails for good, for nobody would run them.
func TestSubHandlersThatAreDeclaredTooLate(t *testing.T) {
	late := func(in func(parent *dsl.Request, declare dsl.Func)) scenario {
		return scenario{
			func(foo *dsl.Resource, j *journal) {
				foo.OnCreate("all", func(_ context.Context, r *dsl.Request) error {
					in(r, func(context.Context, *dsl.Request) error { r.Handle("late", j.Note("late")); return nil })
					return nil
				})
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Advance(time.Hour)
				s.Called()
				if events := s.Events(); len(events) != 1 || !strings.Contains(events[0].Note, "declaring sub-handler all/late: the handler has returned") {
					s.t.Errorf("events %+v", events)
				}
			},
		}
	}
	scenarios(t, map[string]scenario{
		"by a sub-handler with its parent's request": late(func(parent *dsl.Request, declare dsl.Func) { parent.Handle("a", declare) }),
		"by what is done in the end":                 late(func(parent *dsl.Request, declare dsl.Func) { parent.Then(declare) }),
	})
}
