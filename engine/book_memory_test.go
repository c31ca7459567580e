// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestSuccessBesideWhatIsOpen is law 2 for a handler that succeeded while another one of its object is not
// done: its success is stored once it is clear that the other one takes its time, for one write.
func TestSuccessBesideWhatIsOpen(t *testing.T) {
	waits := fails(dsl.Waiting("rain", time.Hour))
	// beside declares a handler that succeeds and one that does not.
	beside := func(open dsl.Func) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.On(both(), "steady", j.Note("steady"))
			foo.On(both(), "open", open)
		}
	}
	// remembers: restarts repeat nothing, and the hours between them cost nothing.
	remembers := func(s *stage) {
		s.t.Helper()
		s.Advance(time.Minute)
		s.Called("steady create")
		s.Wrote("patch foos default/web")
		s.Advance(time.Hour)
		s.Wrote()
		for range 3 {
			s.Process.Restart()
			s.Advance(time.Minute)
			s.Called()
			s.Wrote()
		}
		s.size(2)
		s.Advance(time.Minute)
		s.Called("steady update")
		s.Wrote("patch foos default/web")
		s.Process.Restart()
		s.Called()
	}
	scenarios(t, map[string]scenario{
		"beside one that waits": {beside(waits), func(s *stage) {
			s.Launch()
			s.Create(web)
			remembers(s)
		}},
		"beside one that is tried every five seconds": {beside(temporary(soon)), func(s *stage) {
			s.Launch()
			s.Create(web)
			remembers(s)
		}},
		"beside one that comes after one that waits": {
			func(foo *dsl.Resource, j *journal) {
				beside(waits)(foo, j)
				foo.On(both(), "next", j.Note("next"), dsl.After("open"))
			}, func(s *stage) {
				s.Launch()
				s.Create(web)
				remembers(s)
			},
		},
		"beside one that waits, when it is killed": {beside(waits), func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Advance(time.Minute)
			s.Called("steady create")
			s.Process.Kill()
			s.Process.Restart()
			s.Called()
		}},
		"beside one that is soon done it costs no write of its own": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "steady", j.Note("steady"))
				foo.On(both(), "open", j.Note("open", temporary(soon), succeeds))
			}, func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Advance(time.Hour)
				s.Called("steady create", "open create", "open create 2")
				s.Wrote("patch foos default/web")
			},
		},
		"beside a level-triggered one that waits it is stored at once": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "steady", j.Note("steady"))
				foo.OnReconcile("open", waits)
			}, func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("steady create")
				s.Wrote("patch foos default/web")
				s.Process.Restart()
				s.Called()
			},
		},
	})
}

// TestDeleteHandlersThatAreDone is law 2 for deletions: a delete handler that has succeeded is not run
// again for the same deletion.
func TestDeleteHandlersThatAreDone(t *testing.T) {
	beside := func(second ...dsl.Func) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.OnDelete("one", j.Note("one"))
			foo.OnDelete("two", j.Note("two", second...))
		}
	}
	waits := fails(dsl.Waiting("rain", 10*time.Minute))
	scenarios(t, map[string]scenario{
		"beside one that waits, when the process ends": {beside(waits, waits, succeeds), func(s *stage) {
			s.begin()
			s.remove()
			s.Called("one delete", "two delete")
			s.Advance(time.Minute)
			s.Process.Restart()
			s.Called("two delete")
			s.Process.Restart()
			s.Called("two delete")
			s.gone()
		}},
		"beside one that waits, when the process is killed": {beside(waits, succeeds), func(s *stage) {
			s.begin()
			s.remove()
			s.Called("one delete", "two delete")
			s.Advance(time.Minute)
			s.Process.Kill()
			s.Process.Restart()
			s.Called("two delete")
			s.gone()
		}},
		"beside one that waits, when the finalizer is taken by hand": {beside(waits, succeeds), func(s *stage) {
			s.begin()
			s.remove()
			s.Called("one delete", "two delete")
			s.Update(foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			s.Advance(20 * time.Minute)
			s.Called("two delete")
		}},
		"beside one that waits, when the CRD goes and the finalizer is taken by hand": {beside(waits, succeeds), func(s *stage) {
			s.begin()
			s.Unserve(foos)
			s.Advance(time.Second)
			s.Called("one delete", "two delete")
			s.Update(foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			s.Advance(20 * time.Minute)
			s.Called("two delete")
		}},
		"beside one that waits, when the CRD goes and no watch shows that the finalizer was taken by hand": {beside(waits, succeeds), func(s *stage) {
			s.begin()
			s.Unserve(foos)
			s.Advance(time.Second)
			s.Called("one delete", "two delete")
			s.HoldWatches(foos)
			s.Update(foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			s.Advance(20 * time.Minute)
			s.Called("two delete")
		}},
		"beside one that is tried every five seconds, when the process ends": {beside(temporary(soon)), func(s *stage) {
			s.begin()
			s.remove()
			s.Advance(time.Minute)
			s.Forget()
			s.Process.Restart()
			s.Advance(time.Minute)
			for _, call := range s.Take() {
				if call == "one delete" {
					s.t.Error("the one that was done ran again")
				}
			}
		}},
	})
}

// TestDeleteHandlersAndTheirCRD holds the same when the object goes with its CRD, whatever becomes of the
// write that takes the finalizer.
func TestDeleteHandlersAndTheirCRD(t *testing.T) {
	var s *stage
	// forced: somebody takes the finalizer by hand while the handler runs, so object and CRD are gone when
	// it returns.
	forced := func(context.Context, *dsl.Request) error {
		s.Update(foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
		time.Sleep(5 * time.Second) // of the bubble: that long the handler takes
		return nil
	}
	tests := map[string]struct {
		left   dsl.Func
		before func()
	}{
		"the write is made":                        {succeeds, func() {}},
		"its answer comes late":                    {succeeds, func() { s.DelayNext("patch", foos, 10*time.Second) }},
		"its answer is lost":                       {succeeds, func() { s.LoseNext("patch", foos) }},
		"the resource is gone before it is made":   {forced, func() {}},
		"the watch has shown nothing of it so far": {succeeds, func() { s.HoldWatches(foos) }},
		"the resource is gone before it is made, and no watch has shown it": {func(ctx ctx, r *dsl.Request) error {
			s.HoldWatches(foos)
			return forced(ctx, r)
		}, func() {}},
	}
	operators := map[string]func(foo *dsl.Resource, j *journal){
		"": func(*dsl.Resource, *journal) {}, ", with a handler beside": level,
	}
	for name, test := range tests {
		for which, more := range operators {
			t.Run(name+which, func(t *testing.T) {
				perform(t, scenario{
					func(foo *dsl.Resource, j *journal) {
						foo.OnDelete("left", j.Note("left", test.left))
						more(foo, j)
					}, func(on *stage) {
						s = on
						s.begin()
						test.before()
						s.Unserve(foos)
						s.Advance(10 * time.Second)
						s.ReleaseWatches(foos)
						s.Advance(10 * time.Minute)
						s.Called("left delete")
					},
				})
			})
		}
	}
}
