// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package causes_test

import (
	"context"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAFieldThatIsWrittenWhileTheObjectIsMade holds that a handler of create runs, once, for a field that an earlier
// one writes when it comes to that, however long it takes and whatever process it is.
func TestAFieldThatIsWrittenWhileTheObjectIsMade(t *testing.T) {
	waits := scene.Fails(dsl.Waiting("rain", 10*time.Minute))
	second := func(foo *dsl.Resource, j *kit.Journal, options ...dsl.Option) {
		foo.OnCreate("second", j.Note("second"), append(options, dsl.Field("spec.extra"))...)
	}
	tests := map[string]func(foo *dsl.Resource, j *kit.Journal){
		"one that waits": func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("other", j.Note("other"))
			foo.OnCreate("first", j.Note("first", waits, waits, scene.SetsYes("spec.extra")))
			second(foo, j)
		},
		"a level-triggered one that waits": func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("other", j.Note("other"))
			foo.OnReconcile("first", j.Note("first", waits, waits, scene.SetsYes("spec.extra")), dsl.Field("spec.size"))
			second(foo, j)
		},
		"one that fails": func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("other", j.Note("other"))
			foo.OnCreate("first", j.Note("first", scene.RetriesAfter(time.Minute), scene.SetsYes("spec.extra")))
			second(foo, j)
		},
		"one that runs over its time": func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("first", j.Note("first", func(c context.Context, _ *dsl.Request) error {
				<-c.Done()
				return c.Err()
			}, scene.SetsYes("spec.extra")), dsl.Timeout(time.Second))
			second(foo, j)
		},
		"one that comes after one that waits": func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("other", j.Note("other"))
			foo.OnCreate("zero", j.Note("zero", waits, waits, scene.Succeeds))
			foo.OnCreate("first", j.Note("first", scene.SetsYes("spec.extra")), dsl.After("zero"))
			second(foo, j, dsl.After("first"))
		},
		"one that comes after one that failed for good, until somebody mends that": func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("other", j.Note("other"))
			foo.OnCreate("zero", j.Note("zero", scene.Fails(dsl.Permanent(scene.ErrAgain)), scene.Succeeds), dsl.Field("spec.size"))
			foo.OnCreate("first", j.Note("first", scene.SetsYes("spec.extra")), dsl.After("zero"))
			second(foo, j, dsl.After("first"))
		},
		"one that does not match yet, and comes after one that failed for good": func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("zero", j.Note("zero", scene.Fails(dsl.Permanent(scene.ErrAgain)), scene.Succeeds), dsl.Field("spec.size"))
			foo.OnCreate("first", j.Note("first", scene.SetsYes("spec.extra")), dsl.Label("tier", "gold"), dsl.After("zero"))
			second(foo, j)
		},
		"one that comes after a level-triggered one that waits": func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("other", j.Note("other"))
			foo.OnReconcile("zero", j.Note("zero", waits, waits, scene.Succeeds))
			foo.OnCreate("first", j.Note("first", scene.SetsYes("spec.extra")), dsl.After("zero"))
			second(foo, j, dsl.After("first"))
		},
	}
	for name, operator := range tests {
		for process, restart := range map[string]func(s *scene.Stage){
			"": func(*scene.Stage) {},
			", and a restart in between": func(s *scene.Stage) {
				s.Forget()
				s.Process.Restart()
				s.Settle()
				s.Wrote()
			},
		} {
			t.Run(name+process, func(t *testing.T) {
				scene.Play(t, scene.Scenario{Operator: operator, Play: func(s *scene.Stage) {
					s.Launch()
					s.Create(scene.Web)
					s.Advance(20 * time.Second)
					restart(s)
					s.Advance(time.Hour)
					s.LabelTier("gold")
					s.Resize(2)
					s.Advance(time.Hour)
					if calls := s.Of("second", "web"); len(calls) != 1 || calls[0].Cause != dsl.Create {
						t.Errorf("second was called %v, want once, to create", calls)
					}
				}})
			})
		}
	}
}

// TestAHandlerWhoseFieldMayStillComeBeginsNothingAtARestart is law 4 for a handler of create whose field another one may still write,
// which stands behind it and waits for one that has failed for good: the next process waits, too, and writes nothing.
func TestAHandlerWhoseFieldMayStillComeBeginsNothingAtARestart(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
		foo.OnCreate("zero", j.Note("zero", scene.Fails(dsl.Permanent(scene.ErrAgain))))
		foo.OnCreate("second", j.Note("second"), dsl.Field("spec.extra"))
		foo.OnCreate("first", j.Note("first"), dsl.After("zero"))
	}, Play: func(s *scene.Stage) {
		s.Begin()
		s.Process.Restart()
		s.Advance(time.Hour)
		s.Wrote()
		s.Called()
	}})
}
