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
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/handwerk-dev/handwerk/dsl"
)

// finalizers compares web's finalizers.
func (s *stage) finalizers(want ...string) {
	s.t.Helper()
	s.Settle()
	o := s.web()
	if o == nil {
		s.t.Fatal("the object is gone")
	}
	if diff := cmp.Diff(want, o.GetFinalizers(), cmpopts.EquateEmpty()); diff != "" {
		s.t.Errorf("finalizers (-want +got):\n%s", diff)
	}
}

// gone checks that web is gone.
func (s *stage) gone() {
	s.t.Helper()
	s.Settle()
	if o := s.web(); o != nil {
		s.t.Errorf("the object is still there: %v", o.Object["metadata"])
	}
}

// leaves declares a delete handler.
func leaves(then ...dsl.Func) func(foo *dsl.Resource, j *journal) {
	return func(foo *dsl.Resource, j *journal) { foo.OnDelete("left", j.Note("left", then...)) }
}

// optOut makes the operator one whose delete handler holds no object.
func (s *stage) optOut() {
	s.Operator = dsl.New("op")
	s.Operator.Resource(foos, func(foo *dsl.Resource) { foo.OnDelete("left", s.Note("left"), dsl.NoFinalizer()) })
}

// TestFinalizer is law 7: the finalizer is there before the first side effect, and only where it
// is needed.
func TestFinalizer(t *testing.T) {
	scenarios(t, map[string]scenario{
		"it is there before the first handler runs": {
			leaves(), func(s *stage) {
				s.Operator.Resources()[0].OnCreate("look", func(context.Context, *dsl.Request) error {
					s.Add(strings.Join(s.web().GetFinalizers(), " "))
					return nil
				})
				s.Launch()
				s.Create(web)
				s.Settle()
				if got := s.Take(); len(got) == 0 || got[0] != finalizer {
					s.t.Errorf("the handler saw the finalizers %v", got)
				}
			},
		},
		"nobody who needs it, none is set": {level, func(s *stage) {
			s.begin()
			s.finalizers()
		}},
		"a delete handler that opted out needs none, and runs when the object is gone": {
			func(foo *dsl.Resource, j *journal) { foo.OnDelete("left", j.Note("left"), dsl.NoFinalizer()) },
			func(s *stage) {
				s.begin()
				s.finalizers()
				s.remove()
				s.gone()
				s.Called("left delete")
				s.Wrote()
			},
		},
		"it comes when a delete handler begins to see the object, and goes when it stops to": {
			func(foo *dsl.Resource, j *journal) { foo.OnDelete("left", j.Note("left"), dsl.Label("tier", "gold")) },
			func(s *stage) {
				s.begin()
				s.finalizers()
				s.set("gold", "metadata", "labels", "tier")
				s.finalizers(finalizer)
				s.set("iron", "metadata", "labels", "tier")
				s.finalizers()
				s.remove()
				s.gone()
				s.Called()
			},
		},
		"a handler that is gone from the operator does not leave it behind": {leaves(), func(s *stage) {
			s.begin()
			s.finalizers(finalizer)
			stop(s)
			s.Operator = dsl.New("op")
			s.Operator.Resource(foos, func(foo *dsl.Resource) { level(foo, &s.Journal) })
			s.Launch()
			s.finalizers()
		}},
		"a handler that opts out takes off what was put on before, once from each object": {leaves(), func(s *stage) {
			s.begin()
			s.Create(strings.Replace(web, "name: web", "name: other", 1))
			s.finalizers(finalizer)
			s.Forget()
			stop(s)
			s.optOut()
			s.Launch()
			s.finalizers()
			if n := len(s.Process.Writes()); n != 2 {
				s.t.Errorf("there were %d writes for two objects", n)
			}
			s.Process.Restart()
			s.Settle()
			s.set("gold", "metadata", "labels", "tier")
			s.Settle()
			s.Wrote()
			s.Called()
			s.remove()
			s.gone()
			s.Called("left delete")
		}},
		"a handler that opts out still sees off what the finalizer holds": {leaves(), func(s *stage) {
			s.begin()
			stop(s)
			s.remove()
			s.finalizers(finalizer)
			s.optOut()
			s.Launch()
			s.gone()
			s.Called("left delete")
		}},
		"an object without it that is being deleted gets none": {leaves(), func(s *stage) {
			s.Create(web)
			s.set([]any{"example.com/theirs"}, "metadata", "finalizers")
			s.remove()
			s.Launch()
			s.finalizers("example.com/theirs")
		}},
		"finalizers of others are left alone, and the handler is not run again while they hold": {leaves(), func(s *stage) {
			s.begin()
			s.set([]any{"example.com/theirs", finalizer}, "metadata", "finalizers")
			s.remove()
			s.finalizers("example.com/theirs")
			s.Called("left delete")
			s.set("x", "metadata", "labels", "tier")
			s.Called()
			s.Process.Restart()
			s.set("y", "metadata", "labels", "tier")
			s.Called()
			s.finalizers("example.com/theirs")
		}},
		"a finalizer that somebody adds while ours is written is kept": {leaves(), func(s *stage) {
			s.Launch()
			s.HoldWatches(foos)
			s.Create(web)
			s.set([]any{"example.com/theirs"}, "metadata", "finalizers")
			s.ReleaseWatches(foos)
			s.Settle()
			got := s.web().GetFinalizers()
			slices.Sort(got)
			if diff := cmp.Diff([]string{"example.com/theirs", finalizer}, got); diff != "" {
				s.t.Errorf("finalizers (-want +got):\n%s", diff)
			}
		}},
	})
}

// TestFailedDeletion is law 7: what a delete handler that fails does to its object.
func TestFailedDeletion(t *testing.T) {
	broken := fails(dsl.Permanent(errAgain))
	scenarios(t, map[string]scenario{
		"one that fails is tried again, and holds the object meanwhile": {leaves(temporary(late), succeeds), func(s *stage) {
			s.begin()
			s.remove()
			s.Called("left delete")
			s.finalizers(finalizer)
			s.Advance(late)
			s.Called("left delete 2")
			s.gone()
		}},
		"one that fails for good holds the object, and says so": {leaves(broken), func(s *stage) {
			s.begin()
			s.remove()
			s.Advance(time.Hour)
			s.Called("left delete")
			s.finalizers(finalizer)
			s.Process.Restart()
			s.Advance(time.Hour)
			s.Called()
			events := s.Events()
			if len(events) != 1 || events[0].Reason != "DeletionHeld" || !strings.Contains(events[0].Note, "Deletion is held") {
				s.t.Errorf("events %+v", events)
			}
		}},
		"one that failed for good is tried again when somebody changes the object": {leaves(broken, succeeds), func(s *stage) {
			s.begin()
			s.remove()
			s.Called("left delete")
			s.set("done", "metadata", "labels", "mended")
			s.Called("left delete")
			s.gone()
		}},
		"one that may be released lets the object go when it fails for good": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnDelete("left", j.Note("left", fails(errAgain)), dsl.Retries(1), dsl.Release())
			}, func(s *stage) {
				s.begin()
				s.remove()
				s.finalizers(finalizer)
				s.Advance(time.Minute)
				s.Called("left delete", "left delete 2")
				s.gone()
			},
		},
		"the object goes when the last of several has succeeded, and the others are not repeated": {
			func(foo *dsl.Resource, j *journal) {
				leaves()(foo, j)
				foo.OnDelete("slow", j.Note("slow", temporary(late), succeeds))
			}, func(s *stage) {
				s.begin()
				s.remove()
				s.Called("left delete", "slow delete")
				s.Process.Restart()
				s.Called()
				s.Advance(late)
				s.Called("slow delete 2")
				s.gone()
			},
		},
		"one that holds although another succeeded is remembered across a restart": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnDelete("broken", j.Note("broken", broken))
				leaves()(foo, j)
			}, func(s *stage) {
				s.begin()
				s.remove()
				s.Called("broken delete", "left delete")
				s.Process.Restart()
				s.Advance(time.Hour)
				s.Called()
				s.finalizers(finalizer)
			},
		},
		"progress of other handlers does not hold a deletion": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnCreate("vain", j.Note("vain", temporary(time.Hour)))
				leaves()(foo, j)
			}, func(s *stage) {
				s.begin()
				s.remove()
				s.Called("left delete")
				s.gone()
			},
		},
	})
}
