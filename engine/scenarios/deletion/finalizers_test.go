// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package deletion_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// leaves declares a delete handler.
func leaves(then ...dsl.Func) func(foo *dsl.Resource, j *kit.Journal) {
	return func(foo *dsl.Resource, j *kit.Journal) { foo.OnDelete("left", j.Note("left", then...)) }
}

// holdNoObject makes the operator one whose delete handler holds no object.
func holdNoObject(s *scene.Stage) {
	s.Operator = dsl.New("op")
	s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) { foo.OnDelete("left", s.Note("left"), dsl.NoFinalizer()) })
}

// TestTheFinalizerIsThereOnlyWhereItIsNeeded is law 7: the finalizer is there before the first side effect, and only where it
// is needed.
func TestTheFinalizerIsThereOnlyWhereItIsNeeded(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"it is there before the first handler runs": {
			Operator: leaves(), Play: func(s *scene.Stage) {
				s.Operator.Resources()[0].OnCreate("look", func(context.Context, *dsl.Request) error {
					s.Add(strings.Join(s.Web().GetFinalizers(), " "))
					return nil
				})
				s.Launch()
				s.Create(scene.Web)
				s.Settle()
				if got := s.Take(); len(got) == 0 || got[0] != scene.Finalizer {
					s.T.Errorf("the handler saw the finalizers %v", got)
				}
			},
		},
		"no handler that needs it, none is set": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Begin()
			s.WantFinalizers()
		}},
		"a delete handler that opted out needs none, and runs when the object is gone": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnDelete("left", j.Note("left"), dsl.NoFinalizer())
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.WantFinalizers()
				s.Remove()
				s.WantGone()
				s.Called("left delete")
				s.Wrote()
			},
		},
		"it comes when a delete handler begins to see the object, and goes when it stops to": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnDelete("left", j.Note("left"), dsl.Label("tier", "gold"))
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.WantFinalizers()
				s.Set("gold", "metadata", "labels", "tier")
				s.WantFinalizers(scene.Finalizer)
				s.Set("iron", "metadata", "labels", "tier")
				s.WantFinalizers()
				s.Remove()
				s.WantGone()
				s.Called()
			},
		},
		"a handler that is gone from the operator does not leave it behind": {Operator: leaves(), Play: func(s *scene.Stage) {
			s.Begin()
			s.WantFinalizers(scene.Finalizer)
			scene.Stop(s)
			s.Operator = dsl.New("op")
			s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) { scene.Syncs(foo, &s.Journal) })
			s.Launch()
			s.WantFinalizers()
		}},
		"a handler that opts out takes off what was put on before, once from each object": {Operator: leaves(), Play: func(s *scene.Stage) {
			s.Begin()
			s.Create(strings.Replace(scene.Web, "name: web", "name: other", 1))
			s.WantFinalizers(scene.Finalizer)
			s.Forget()
			scene.Stop(s)
			holdNoObject(s)
			s.Launch()
			s.WantFinalizers()
			if n := len(s.Process.Writes()); n != 2 {
				s.T.Errorf("there were %d writes for two objects", n)
			}
			s.Process.Restart()
			s.Settle()
			s.Set("gold", "metadata", "labels", "tier")
			s.Settle()
			s.Wrote()
			s.Called()
			s.Remove()
			s.WantGone()
			s.Called("left delete")
		}},
		"a handler that opts out still sees off what the finalizer holds": {Operator: leaves(), Play: func(s *scene.Stage) {
			s.Begin()
			scene.Stop(s)
			s.Remove()
			s.WantFinalizers(scene.Finalizer)
			holdNoObject(s)
			s.Launch()
			s.WantGone()
			s.Called("left delete")
		}},
		"an object without it that is being deleted gets none": {Operator: leaves(), Play: func(s *scene.Stage) {
			s.Create(scene.Web)
			s.Set([]any{"example.com/theirs"}, "metadata", "finalizers")
			s.Remove()
			s.Launch()
			s.WantFinalizers("example.com/theirs")
		}},
		"finalizers of others are left alone, and the handler is not run again while they hold": {Operator: leaves(), Play: func(s *scene.Stage) {
			s.Begin()
			s.Set([]any{"example.com/theirs", scene.Finalizer}, "metadata", "finalizers")
			s.Remove()
			s.WantFinalizers("example.com/theirs")
			s.Called("left delete")
			s.Set("x", "metadata", "labels", "tier")
			s.Called()
			s.Process.Restart()
			s.Set("y", "metadata", "labels", "tier")
			s.Called()
			s.WantFinalizers("example.com/theirs")
		}},
		"a finalizer that somebody adds while ours is written is kept": {Operator: leaves(), Play: func(s *scene.Stage) {
			s.Launch()
			s.HoldWatches(scene.Foos)
			s.Create(scene.Web)
			s.Set([]any{"example.com/theirs"}, "metadata", "finalizers")
			s.ReleaseWatches(scene.Foos)
			s.Settle()
			got := s.Web().GetFinalizers()
			slices.Sort(got)
			if diff := cmp.Diff([]string{"example.com/theirs", scene.Finalizer}, got); diff != "" {
				s.T.Errorf("finalizers (-want +got):\n%s", diff)
			}
		}},
	})
}

// TestADeleteHandlerThatFailsHoldsItsObject is law 7: what a delete handler that fails does to its object.
func TestADeleteHandlerThatFailsHoldsItsObject(t *testing.T) {
	broken := scene.Fails(dsl.Permanent(scene.ErrAgain))
	scene.PlayAll(t, map[string]scene.Scenario{
		"one that fails is tried again, and holds the object meanwhile": {Operator: leaves(scene.RetriesAfter(scene.Late), scene.Succeeds), Play: func(s *scene.Stage) {
			s.Begin()
			s.Remove()
			s.Called("left delete")
			s.WantFinalizers(scene.Finalizer)
			s.Advance(scene.Late)
			s.Called("left delete 2")
			s.WantGone()
		}},
		"one that fails for good holds the object, and says so": {Operator: leaves(broken), Play: func(s *scene.Stage) {
			s.Begin()
			s.Remove()
			s.Advance(time.Hour)
			s.Called("left delete")
			s.WantFinalizers(scene.Finalizer)
			s.Process.Restart()
			s.Advance(time.Hour)
			s.Called()
			events := s.Events()
			if len(events) != 1 || events[0].Reason != "DeletionHeld" || !strings.Contains(events[0].Note, "Deletion is held") {
				s.T.Errorf("events %+v", events)
			}
		}},
		"one that failed for good is tried again when somebody changes the object": {Operator: leaves(broken, scene.Succeeds), Play: func(s *scene.Stage) {
			s.Begin()
			s.Remove()
			s.Called("left delete")
			s.Set("done", "metadata", "labels", "mended")
			s.Called("left delete")
			s.WantGone()
		}},
		"one that may be released lets the object go when it fails for good": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnDelete("left", j.Note("left", scene.Fails(scene.ErrAgain)), dsl.Retries(1), dsl.Release())
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Remove()
				s.WantFinalizers(scene.Finalizer)
				s.Advance(time.Minute)
				s.Called("left delete", "left delete 2")
				s.WantGone()
			},
		},
		"the object goes when the last of several has succeeded, and the others are not repeated": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				leaves()(foo, j)
				foo.OnDelete("slow", j.Note("slow", scene.RetriesAfter(scene.Late), scene.Succeeds))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Remove()
				s.Called("left delete", "slow delete")
				s.Process.Restart()
				s.Called()
				s.Advance(scene.Late)
				s.Called("slow delete 2")
				s.WantGone()
			},
		},
		"one that holds although another succeeded is remembered across a restart": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnDelete("broken", j.Note("broken", broken))
				leaves()(foo, j)
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Remove()
				s.Called("broken delete", "left delete")
				s.Process.Restart()
				s.Advance(time.Hour)
				s.Called()
				s.WantFinalizers(scene.Finalizer)
			},
		},
		"progress of other handlers does not hold a deletion": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("vain", j.Note("vain", scene.RetriesAfter(time.Hour)))
				leaves()(foo, j)
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Remove()
				s.Called("left delete")
				s.WantGone()
			},
		},
	})
}
