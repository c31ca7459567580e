// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// writesStatus is a step that sets a field of the status.
func writesStatus(field string) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		r.Patch.SetStatus(field, true)
		return nil
	}
}

// overruns is a step that wants something, and does not come to its end in time.
func overruns(ctx context.Context, r *dsl.Request) error {
	r.Patch.SetStatus("half", true)
	<-ctx.Done()
	return ctx.Err()
}

// endsLate is one that does not heed the end of its time, and knows of no error.
func endsLate(ctx context.Context, r *dsl.Request) error {
	_ = overruns(ctx, r)
	return nil
}

// breaksOff is one that wants something, and panics.
func breaksOff(ctx context.Context, r *dsl.Request) error {
	r.Patch.SetStatus("half", true)
	return scene.Panics(ctx, r)
}

// TestATimeoutTakesBackTheRunningStepAlone holds that the end of their handler's time, and a panic, take back the step alone
// that was under way, with what it wanted.
func TestATimeoutTakesBackTheRunningStepAlone(t *testing.T) {
	for how, once := range map[string]dsl.Func{"overruns": overruns, "ends too late": endsLate, "panics": breaksOff} {
		steps := func(j *kit.Journal) dsl.Func {
			return dsl.Steps(j.Note("one", writesStatus("one")), j.Note("two", once, writesStatus("two")), j.Note("three", writesStatus("three")))
		}
		// half checks what is there when the second step was not finished, and whole when all are.
		half := func(s *scene.Stage) {
			s.T.Helper()
			if diff := cmp.Diff(map[string]any{"one": true}, s.Web().Object["status"]); diff != "" {
				s.T.Errorf("status after the first attempt (-want +got):\n%s", diff)
			}
		}
		whole := func(s *scene.Stage) {
			s.T.Helper()
			if diff := cmp.Diff(map[string]any{"one": true, "two": true, "three": true}, s.Web().Object["status"]); diff != "" {
				s.T.Errorf("status in the end (-want +got):\n%s", diff)
			}
		}
		goesOn := func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Advance(11 * time.Second)
			s.Called("one create", "two create")
			half(s)
			s.Advance(2 * time.Minute)
			s.Called("two create 2", "three create 2")
			whole(s)
		}
		limits := []dsl.Option{dsl.Timeout(10 * time.Second), dsl.WithBackoff(time.Minute, time.Minute)}
		for name, test := range map[string]scene.Scenario{
			"in a handler": {
				Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnReconcile("h", steps(j), limits...) },
				Play:     goesOn,
			},
			"in one whose progress is stored, and the process ends": {
				Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnCreate("h", steps(j), limits...) },
				Play: func(s *scene.Stage) {
					s.Launch()
					s.Create(scene.Web)
					s.Advance(30 * time.Second)
					s.Called("one create", "two create")
					s.Process.Kill()
					s.Process.Restart()
					s.Advance(2 * time.Minute)
					s.Called("two create 2", "three create 2")
					whole(s)
				},
			},
			"in a sub-handler": {
				Operator: func(foo *dsl.Resource, j *kit.Journal) {
					part := steps(j)
					foo.OnReconcile("h", func(_ context.Context, r *dsl.Request) error {
						r.Handle("part", part, limits...)
						return nil
					})
				},
				Play: goesOn,
			},
			"in a state of a machine": {
				Operator: func(foo *dsl.Resource, j *kit.Journal) {
					foo.Machine(dsl.Machine{States: []dsl.State{{Name: "New", Enter: steps(j), Terminal: true}}}, limits...)
				},
				Play: func(s *scene.Stage) {
					s.Launch()
					s.Create(scene.Web)
					s.Advance(2 * time.Minute)
					s.Called("one create", "two create", "two create 2", "three create 2")
					if status := s.Web().Object["status"].(map[string]any); status["one"] != true || status["two"] != true || status["half"] != nil {
						s.T.Errorf("its status is %v", status)
					}
				},
			},
			"in a handler that counts its steps by itself, which begins again": {
				Operator: func(foo *dsl.Resource, j *kit.Journal) {
					foo.OnReconcile("h", func(ctx context.Context, r *dsl.Request) error {
						for _, step := range []dsl.Func{writesStatus("one"), once} {
							if err := step(ctx, r); err != nil {
								return err
							}
							r.Step++
						}
						return nil
					}, append(limits, dsl.Retries(0))...)
				},
				Play: func(s *scene.Stage) {
					s.Launch()
					s.Create(scene.Web)
					s.Advance(2 * time.Minute)
					if status := s.Web().Object["status"]; status != nil {
						s.T.Errorf("its status is %v", status)
					}
				},
			},
		} {
			t.Run(how+" "+name, func(t *testing.T) { scene.Play(t, test) })
		}
	}
}

// TestATimeoutTakesBackTheRunningStepAloneInYAML holds the same of YAML, and of entries of forEach.
func TestATimeoutTakesBackTheRunningStepAloneInYAML(t *testing.T) {
	slow := func() map[string]dsl.Func {
		late := false
		return map[string]dsl.Func{"b": func(ctx context.Context, r *dsl.Request) error {
			if late {
				return nil
			}
			late = true
			return overruns(ctx, r)
		}}
	}
	playForEach(t, `
      - id: h
        timeout: 10s
        steps:
          - {call: test.Note, with: {host: a}}
          - {call: test.Note, with: {host: b}}
          - {call: test.Note, with: {host: c}}
`, slow(), func(s *scene.Stage) {
		s.Launch()
		s.Create(scene.Web)
		s.Advance(time.Minute)
		s.Called("h a create 1", "h b create 1", "h b create 2", "h c create 2")
	})
	playForEach(t, `
      - id: h
        timeout: 10s
        forEach: ${['x']}
        steps:
          - {call: test.Note, with: {host: a}}
          - {call: test.Note, with: {host: b}}
          - {call: test.Note, with: {host: c}}
`, slow(), func(s *scene.Stage) {
		s.Launch()
		s.Create(scene.Web)
		s.Advance(time.Minute)
		s.Called("h/x a create 1", "h/x b create 1", "h/x b create 2", "h/x c create 2")
	})
}

// TestAWrongPathInAStepFailsItsHandlerForGood holds that it fails the handler for good, as elsewhere, where the step waits
// for others, too.
func TestAWrongPathInAStepFailsItsHandlerForGood(t *testing.T) {
	wrong := func(then error) dsl.Func {
		return func(_ context.Context, r *dsl.Request) error {
			r.Patch.SetStatus("a..b", true)
			return then
		}
	}
	for name, fn := range map[string]dsl.Func{
		"the step is done": dsl.Steps(wrong(nil)), "the step waits": dsl.Steps(wrong(dsl.Waiting("rain", time.Minute))),
		"the handler waits": wrong(dsl.Waiting("rain", time.Minute)),
	} {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{
				Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnCreate("h", j.Note("h", fn)) },
				Play: func(s *scene.Stage) {
					s.Launch()
					s.Create(scene.Web)
					s.Advance(time.Hour)
					s.Called("h create")
				},
			})
		})
	}
}
