// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package timers_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// once declares a handler in Go that runs when spec.size minutes have passed since the creation.
func once(then []dsl.Func, options ...dsl.Option) func(foo *dsl.Resource, j *kit.Journal) {
	return func(foo *dsl.Resource, j *kit.Journal) {
		foo.Once(func(s *dsl.Subject) (time.Time, error) {
			switch size := scene.SizeOf(s.Object); {
			case size == 99:
				panic("broken")
			case size < 0:
				return time.Time{}, errors.New("less than nothing")
			default:
				return s.Object.GetCreationTimestamp().Add(time.Duration(size) * time.Minute), nil
			}
		}, "expire", j.Note("expire", then...), options...)
	}
}

func TestAHandlerThatFailsAtItsTimeIsTriedAgain(t *testing.T) {
	retries := []dsl.Func{scene.RetriesAfter(30 * time.Second)}
	scene.PlayAll(t, map[string]scene.Scenario{
		"by its back-off, and it is done when it succeeds": {Operator: once([]dsl.Func{scene.RetriesAfter(30 * time.Second), nil}), Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(time.Minute)
			s.Called("expire timer")
			s.Wrote()
			s.Advance(30 * time.Second)
			s.Called("expire timer 2")
			s.Wrote(storing)
			s.Advance(time.Hour)
			s.Called()
		}},
		"until the time moves on": {Operator: once(retries), Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(time.Minute)
			s.Called("expire timer")
			s.Resize(60)
			s.Advance(58 * time.Minute)
			s.Called()
			s.Advance(time.Minute)
			s.Called("expire timer")
		}},
		"after a restart, too": {Operator: once(retries), Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(time.Minute)
			s.Called("expire timer")
			s.Process.Restart()
			s.Called("expire timer")
		}},
		"and when it has failed for good, once its object changes, or at a later time": {Operator: once([]dsl.Func{scene.Fails(dsl.Permanent(scene.ErrAgain))}), Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(time.Hour)
			s.Called("expire timer")
			s.Wrote(storing)
			s.Set("blue", "spec", "color")
			s.Called("expire timer")
			s.Resize(90)
			s.Advance(time.Hour)
			s.Called("expire timer")
			s.Advance(time.Hour)
			s.Called()
		}},
		"and when a person says so": {Operator: once([]dsl.Func{scene.Fails(dsl.Permanent(scene.ErrAgain)), nil}), Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(time.Hour)
			s.Called("expire timer")
			s.Set("expire", "metadata", "annotations", "op.handwerk.dev/retry")
			s.Called("expire timer")
			s.Advance(time.Hour)
			s.Called()
		}},
	})
}

// TestATimeThatCannotBeComputedIsAskedForAgain holds that its handler does not run meanwhile, says so, and runs once it is known.
func TestATimeThatCannotBeComputedIsAskedForAgain(t *testing.T) {
	for name, size := range map[string]int64{"an error": -1, "a panic": 99} {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: once(nil), Play: func(s *scene.Stage) {
				s.Begin()
				s.Resize(size)
				s.Advance(time.Hour)
				s.Called()
				s.Wrote()
				said := 0
				for _, e := range s.Events() {
					if e.Reason == "FilterFailed" && strings.HasPrefix(e.Note, "Handler expire does not run by time for this object: ") {
						said++
					}
				}
				if said != 1 {
					t.Errorf("%d Events say so, want 1: %v", said, s.Events())
				}
				s.Resize(2)
				s.Called("expire timer")
			}})
		})
	}
	t.Run("without an event, by the handler's back-off", func(t *testing.T) {
		var mended atomic.Bool
		operator := func(foo *dsl.Resource, j *kit.Journal) {
			foo.Once(func(s *dsl.Subject) (time.Time, error) {
				if !mended.Load() {
					return time.Time{}, scene.ErrAgain
				}
				return s.Object.GetCreationTimestamp().Time, nil
			}, "expire", j.Note("expire"), dsl.WithBackoff(10*time.Second, 10*time.Second))
		}
		scene.Play(t, scene.Scenario{Operator: operator, Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(5 * time.Second)
			mended.Store(true)
			s.Called()
			s.Advance(10 * time.Second)
			s.Called("expire timer")
		}})
	})
}

// TestAHandlerSeesItsTimeAsTheCause holds that the context and the object are those of any other run.
func TestAHandlerSeesItsTimeAsTheCause(t *testing.T) {
	sets := func(_ context.Context, r *dsl.Request) error {
		r.Patch.SetStatus("ran", string(r.Cause))
		return nil
	}
	scene.Play(t, scene.Scenario{Operator: once([]dsl.Func{sets}), Play: func(s *scene.Stage) {
		s.Begin()
		s.Advance(time.Minute)
		s.WantStatus(map[string]any{"ran": "timer"})
		s.Wrote(scene.StatusWrite, storing)
		s.Process.Restart()
		s.Wrote()
	}})
}

// TestAHandlerThatHasFailedForGoodAtItsTimeRunsAgainWhenThatIsMended holds that it does so also after a restart, and not for the restart.
func TestAHandlerThatHasFailedForGoodAtItsTimeRunsAgainWhenThatIsMended(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: once([]dsl.Func{scene.Fails(dsl.Permanent(scene.ErrAgain)), nil}), Play: func(s *scene.Stage) {
		s.Begin()
		s.Advance(time.Hour)
		s.Called("expire timer")
		s.Forget()
		s.Process.Restart()
		s.Advance(time.Hour)
		s.Called()
		s.Wrote()
		s.Set("blue", "spec", "color")
		s.Called("expire timer")
		s.Set("green", "spec", "color")
		s.Process.Restart()
		s.Advance(time.Hour)
		s.Called()
	}})
}
