// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
)

// inParts is a handler that declares sub-handlers of these names, each of which notes its attempts and fails as often as then
// says before it succeeds.
func inParts(j *journal, then map[string]dsl.Func, options map[string][]dsl.Option, names ...string) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		for _, name := range names {
			r.Handle(name, func(ctx context.Context, r *dsl.Request) error {
				j.Add(fmt.Sprintf("%s %s %d", r.Handler, r.Cause, r.Attempt))
				if do := then[name]; do != nil {
					return do(ctx, r)
				}
				return nil
			}, options[name]...)
		}
		return nil
	}
}

// failsFirst fails until it has been called so many times in all.
func failsFirst(n int, err error) dsl.Func {
	return func(context.Context, *dsl.Request) error {
		if n--; n >= 0 {
			return err
		}
		return nil
	}
}

// TestSubHandlers holds that each has progress of its own, and that the handler is through when all are.
func TestSubHandlers(t *testing.T) {
	minute := dsl.Temporary(errAgain, time.Minute)
	only := func(name string, options ...dsl.Option) map[string][]dsl.Option {
		return map[string][]dsl.Option{name: options}
	}
	scenarios(t, map[string]scenario{
		"those that have succeeded do not run again while another one is tried again, and what comes after waits": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnCreate("all", inParts(j, map[string]dsl.Func{"b": failsFirst(2, minute)}, nil, "a", "b", "c"))
				foo.OnCreate("next", j.Note("next"), dsl.After("all"))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("all/a create 1", "all/b create 1", "all/c create 1")
				s.Advance(time.Minute)
				s.Called("all/b create 2")
				s.Advance(time.Minute)
				s.Called("all/b create 3", "next create")
				s.Process.Restart()
				s.Advance(time.Hour)
				s.Called()
			},
		},
		"so it is after a crash, and attempts are counted on": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnCreate("all", inParts(j, map[string]dsl.Func{"b": failsFirst(9, minute)}, nil, "a", "b"))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("all/a create 1", "all/b create 1")
				s.Advance(time.Minute)
				s.Called("all/b create 2")
				s.Process.Kill()
				s.Advance(10 * time.Second)
				s.Launch()
				s.Called()
				s.Advance(time.Minute)
				s.Called("all/b create 3")
			},
		},
		"one that failed for good fails the handler once the others have finished, which say what they come to": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("all", inParts(j, map[string]dsl.Func{
					"a": fails(dsl.Permanent(errAgain)),
					"b": failsFirst(1, minute),
					"c": func(_ context.Context, r *dsl.Request) error { r.Result(3); return nil },
				}, nil, "a", "b", "c"))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("all/a create 1", "all/b create 1", "all/c create 1")
				if events := s.Events(); len(events) > 0 {
					s.t.Errorf("events %+v", events)
				}
				s.Advance(time.Minute)
				s.Called("all/b create 2")
				if events := s.Events(); len(events) != 1 || !strings.Contains(events[0].Note, "sub-handlers failed for good: a: not yet") {
					s.t.Errorf("events %+v", events)
				}
				if diff := cmp.Diff(map[string]any{"all/c": int64(3)}, s.web().Object["status"]); diff != "" {
					s.t.Errorf("status (-want +got):\n%s", diff)
				}
				s.size(2)
				s.Called("all/a update 1", "all/b update 1", "all/c update 1")
			},
		},
		"a deletion waits for all of them": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnDelete("all", inParts(j, map[string]dsl.Func{"a": failsFirst(1, minute)}, nil, "a", "b"))
			},
			func(s *stage) {
				s.begin()
				s.remove()
				s.Called("all/a delete 1", "all/b delete 1")
				if s.web() == nil {
					s.t.Fatal("the object is gone")
				}
				s.Advance(time.Minute)
				s.Called("all/a delete 2")
				if s.web() != nil {
					s.t.Error("the object is held")
				}
			},
		},
		"retries, ignored errors, filters and timeouts are their own": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("all", inParts(j, map[string]dsl.Func{
					"retried": fails(minute), "ignored": fails(errAgain), "slow": func(ctx context.Context, _ *dsl.Request) error { <-ctx.Done(); return ctx.Err() },
					"torn": panics,
				}, map[string][]dsl.Option{
					"retried": {dsl.Retries(1)}, "ignored": {dsl.Errors(dsl.ErrorsIgnore)}, "slow": {dsl.Timeout(time.Second), dsl.Retries(0)},
					"torn": {dsl.Retries(0)}, "unseen": {dsl.Label("no", "such")}, "also": {dsl.When(func(*dsl.Subject) (bool, error) { return false, nil })},
				}, "retried", "ignored", "slow", "torn", "unseen", "also"))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Advance(2 * time.Second)
				s.Called("all/retried create 1", "all/ignored create 1", "all/slow create 1", "all/torn create 1")
				s.Advance(time.Hour)
				s.Called("all/retried create 2")
				events := s.Events()
				if len(events) != 1 || !strings.Contains(events[0].Note, "retried: not yet; slow: the timeout passed (1s): context deadline exceeded; torn: panic: nil map") {
					s.t.Errorf("events %+v", events)
				}
			},
		},
		"they may declare more": {
			func(foo *dsl.Resource, j *journal) {
				inner := inParts(j, map[string]dsl.Func{"x": failsFirst(1, minute)}, nil, "x", "y")
				foo.OnCreate("all", inParts(j, map[string]dsl.Func{"a": inner}, nil, "a", "b"))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("all/a create 1", "all/a/x create 1", "all/a/y create 1", "all/b create 1")
				s.Advance(time.Minute)
				s.Called("all/a create 1", "all/a/x create 2")
				s.Advance(time.Hour)
				s.Called()
			},
		},
		"what is to be done then is done once all have succeeded, and its error is the handler's": {
			func(foo *dsl.Resource, j *journal) {
				parts := inParts(j, map[string]dsl.Func{"a": failsFirst(1, minute)}, nil, "a", "b")
				then := j.Note("then", fails(minute), nil)
				foo.OnCreate("all", func(ctx context.Context, r *dsl.Request) error {
					r.Then(then)
					return parts(ctx, r)
				})
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("all/a create 1", "all/b create 1")
				s.Advance(time.Minute)
				s.Called("all/a create 2", "then create")
				s.Advance(time.Minute)
				s.Called("then create 2")
				s.Advance(time.Hour)
				s.Called()
			},
		},
		"when the handler fails itself, they wait for it": {
			func(foo *dsl.Resource, j *journal) {
				parts := inParts(j, nil, nil, "a")
				own := failsFirst(1, minute)
				foo.OnCreate("all", func(ctx context.Context, r *dsl.Request) error {
					if err := parts(ctx, r); err != nil {
						return err
					}
					return own(ctx, r)
				})
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called()
				s.Advance(time.Minute)
				s.Called("all/a create 1")
			},
		},
		"what is wrong with them fails the handler for good": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("all", inParts(j, nil, only("b", dsl.Field("spec")), "a", "a", "b", "c d"))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called()
				events := s.Events()
				if len(events) != 1 || !strings.Contains(events[0].Note, "all/a: the id is used twice") {
					s.t.Errorf("events %+v", events)
				}
			},
		},
		"when what the handler looks at changes, all begin anew": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("all", inParts(j, map[string]dsl.Func{"b": fails(minute)}, nil, "a", "b"))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("all/a create 1", "all/b create 1")
				s.size(2)
				s.Called("all/a create 1", "all/b create 1")
			},
		},
	})
}

// TestTooManySubHandlers holds that their progress is bounded.
func TestTooManySubHandlers(t *testing.T) {
	var names []string
	for i := range dsl.MostSubHandlers + 1 {
		names = append(names, fmt.Sprint("n", i))
	}
	scenarios(t, map[string]scenario{"one more than there may be": {
		func(foo *dsl.Resource, j *journal) { foo.OnReconcile("all", inParts(j, nil, nil, names...)) },
		func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Called()
			if events := s.Events(); len(events) != 1 || !strings.Contains(events[0].Note, "all/n100: there are more than 100") {
				s.t.Errorf("events %+v", events)
			}
		},
	}})
}
