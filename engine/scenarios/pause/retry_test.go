// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pause_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

const retryKey = "op.handwerk.dev/retry"

// wantTaken fails the test unless the annotation is off.
func wantTaken(s *scene.Stage) {
	s.T.Helper()
	s.Settle()
	if got := s.Web().GetAnnotations(); len(got) > 0 {
		s.T.Errorf("annotations %v", got)
	}
}

// withEnter declares a machine whose only action does this at its first run, and succeeds from then on.
func withEnter(first dsl.Func) func(*dsl.Resource, *kit.Journal) {
	return func(foo *dsl.Resource, j *kit.Journal) {
		foo.Machine(dsl.Machine{States: []dsl.State{
			{Name: "Running", Enter: j.Note("enter", first, scene.Succeeds), Transitions: []dsl.Transition{{To: "Finished"}}}, {Name: "Finished", Terminal: true},
		}})
	}
}

// TestRetry holds that a person has handlers run now that failed or wait, by an annotation that goes with the reconcile's write.
func TestRetry(t *testing.T) {
	// once is an operator whose handler sync does this at its first run, and succeeds from then on.
	once := func(first dsl.Func, options ...dsl.Option) func(*dsl.Resource, *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("sync", j.Note("sync", first, scene.Succeeds), options...)
			foo.OnReconcile("other", j.Note("other"))
		}
	}
	asks := func(value string) func(*scene.Stage) {
		return func(s *scene.Stage) {
			s.Begin()
			s.Advance(time.Minute)
			s.Forget()
			annotate(s, map[string]string{retryKey: value})
		}
	}
	taken := func(s *scene.Stage) {
		s.T.Helper()
		s.Wrote("patch foos default/web")
		wantTaken(s)
		s.Advance(time.Minute)
		s.Wrote()
		s.Called()
	}
	permanent := scene.Fails(dsl.Permanent(scene.ErrAgain))
	scene.PlayAll(t, map[string]scene.Scenario{
		"one that waits for its next attempt runs now, as at the first": {Operator: once(scene.RetriesAfter(time.Hour)), Play: func(s *scene.Stage) {
			asks("sync")(s)
			s.Called("sync create")
			taken(s)
		}},
		"one that failed for good, too": {Operator: once(permanent), Play: func(s *scene.Stage) {
			asks("sync")(s)
			s.Called("sync update")
			taken(s)
		}},
		"one whose deadline is over has another one": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("sync", j.Note("sync", scene.RetriesAfter(10*time.Second), scene.RetriesAfter(10*time.Second), scene.RetriesAfter(10*time.Second), scene.Succeeds), dsl.Deadline(15*time.Second))
		}, Play: func(s *scene.Stage) {
			asks("sync")(s)
			s.Called("sync update")
			s.Advance(10 * time.Second)
			s.Called("sync update 2")
		}},
		"one that waits for other objects": {Operator: once(scene.Fails(dsl.Waiting("the moon", time.Hour))), Play: func(s *scene.Stage) {
			asks("sync")(s)
			s.Called("sync create")
			taken(s)
		}},
		"all that fail": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("sync", j.Note("sync", permanent, scene.Succeeds))
			foo.OnCreate("made", j.Note("made", permanent, scene.Succeeds))
			foo.OnUpdate("changed", j.Note("changed"))
		}, Play: func(s *scene.Stage) {
			asks("*")(s)
			s.Called("sync update", "made create")
		}},
		"one that has succeeded has nothing to retry": {Operator: once(permanent), Play: func(s *scene.Stage) {
			asks("other")(s)
			taken(s)
		}},
		"a timer that waits for its next attempt": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.On([]dsl.Cause{dsl.Timer}, "tick", j.Note("tick", scene.RetriesAfter(time.Hour), scene.Succeeds), dsl.At(scene.WithoutJitter(dsl.Timing{Every: 50 * time.Second})))
		}, Play: func(s *scene.Stage) {
			asks("tick")(s)
			s.Called("tick timer")
		}},
		"steps that are done stay done": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("sync", j.Note("sync", func(_ context.Context, r *dsl.Request) error {
				r.Step = 1
				return scene.ErrAgain
			}, func(_ context.Context, r *dsl.Request) error {
				if r.Step != 1 {
					j.Add("again from the first step")
				}
				return nil
			}), dsl.WithBackoff(time.Hour, time.Hour))
		}, Play: func(s *scene.Stage) {
			asks("sync")(s)
			s.Called("sync create")
		}},
		"a delete handler that failed for good lets its object go": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnDelete("left", j.Note("left", permanent, scene.Succeeds))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Remove()
			s.Called("left delete")
			annotate(s, map[string]string{retryKey: "left"})
			s.Called("left delete")
			s.WantGone()
		}},
		"a daemon that has failed begins again": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Daemon("watch", func(context.Context, *dsl.DaemonRequest) error {
				j.Add("begins")
				return dsl.Permanent(scene.ErrAgain)
			})
		}, Play: func(s *scene.Stage) {
			asks("watch")(s)
			s.Called("begins")
		}},
		"a daemon that waits for its next run runs now, as at the first": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Daemon("watch", func(_ context.Context, r *dsl.DaemonRequest) error {
				j.Add(fmt.Sprint("begins ", r.Attempt))
				return scene.ErrAgain
			}, dsl.WithBackoff(time.Hour, time.Hour))
		}, Play: func(s *scene.Stage) {
			asks("watch")(s)
			s.Called("begins 1")
			taken(s)
		}},
		"an action of a machine that waits for its next attempt": {
			Operator: withEnter(scene.RetriesAfter(time.Hour)),
			Play: func(s *scene.Stage) {
				asks("machine")(s)
				s.Called("enter create")
				wantTaken(s)
				s.WantState("Finished")
			},
		},
		"one that waits for other objects, too": {
			Operator: withEnter(scene.Fails(dsl.Waiting("the moon", time.Hour))),
			Play: func(s *scene.Stage) {
				asks("*")(s)
				s.Called("enter create")
				wantTaken(s)
				s.WantState("Finished")
			},
		},
		"a schedule of the resource is no handler of an object": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Schedule(scene.WithoutJitter(dsl.Timing{Every: time.Hour}), "tidy", j.Note("tidy"))
		}, Play: func(s *scene.Stage) {
			asks("tidy")(s)
			s.Called()
			wantTaken(s)
		}},
		"a handler that does not exist is named in an Event": {Operator: once(permanent), Play: func(s *scene.Stage) {
			asks("snyc")(s)
			taken(s)
			text := ""
			for _, e := range s.Events() {
				text += fmt.Sprintln(e)
			}
			if !strings.Contains(text, "RetryRefused") || !strings.Contains(text, "names snyc; the handlers are sync, other") {
				s.T.Errorf("Events:\n%s", text)
			}
		}},
		"an annotation that names none goes, too": {Operator: once(permanent), Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(time.Minute)
			s.Forget()
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{retryKey: ""}) })
			taken(s)
		}},
		"after a crash before the write it is taken up again": {Operator: once(permanent), Play: func(s *scene.Stage) {
			s.Begin()
			s.FailNext("patch", scene.Foos, scene.ErrAgain)
			annotate(s, map[string]string{retryKey: "sync"})
			s.Called("sync update")
			s.Process.Kill()
			s.Process.Restart()
			s.Settle()
			wantTaken(s)
		}},
		"another request meanwhile is not lost": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("sync", j.Note("sync", permanent, scene.TakesTime(time.Minute)))
			foo.OnReconcile("other", j.Note("other", permanent, scene.Succeeds))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			annotate(s, map[string]string{retryKey: "sync"})
			annotate(s, map[string]string{retryKey: "other"})
			s.Advance(2 * time.Minute)
			s.Called("sync update", "other update")
			wantTaken(s)
		}},
		"a paused object is retried afterwards": {Operator: once(permanent), Play: func(s *scene.Stage) {
			s.Begin()
			annotate(s, map[string]string{retryKey: "*", pausedKey: "x"})
			s.Called()
			annotate(s, map[string]string{pausedKey: ""})
			s.Called("sync update")
			wantTaken(s)
		}},
	})
}

// TestARetryOfEachCause holds that a handler which failed for good runs again whatever it ran for.
func TestARetryOfEachCause(t *testing.T) {
	fails := func(j *kit.Journal) dsl.Func {
		permanent := scene.Fails(dsl.Permanent(scene.ErrAgain))
		return j.Note("h", permanent, permanent, scene.Succeeds)
	}
	tests := map[dsl.Cause]struct {
		declare func(*dsl.Resource, dsl.Func)
		cause   func(*scene.Stage) // what it runs for, after the object was created
	}{
		dsl.Create: {declare: func(foo *dsl.Resource, f dsl.Func) { foo.OnCreate("h", f) }},
		dsl.Update: {func(foo *dsl.Resource, f dsl.Func) { foo.OnUpdate("h", f) }, func(s *scene.Stage) { s.Resize(3) }},
		dsl.Timer: {func(foo *dsl.Resource, f dsl.Func) {
			foo.On([]dsl.Cause{dsl.Timer}, "h", f, dsl.At(scene.WithoutJitter(dsl.Timing{Every: time.Hour})))
		}, func(s *scene.Stage) { s.Advance(61 * time.Minute) }},
		dsl.Resume: {func(foo *dsl.Resource, f dsl.Func) {
			foo.OnCreate("made", scene.Succeeds)
			foo.OnResume("h", f)
		}, func(s *scene.Stage) { s.Process.Restart() }},
		dsl.Child: {declare: func(foo *dsl.Resource, f dsl.Func) {
			keepsValue(foo, nil)
			foo.On([]dsl.Cause{dsl.Child}, "h", f)
		}},
		dsl.RelatedChange: {func(foo *dsl.Resource, f dsl.Func) {
			foo.Relates(dsl.Relation{Name: "them", Resource: dsl.ResourceName{Resource: "configmaps", Version: "v1"}, Select: scene.RelatedByName})
			foo.On([]dsl.Cause{dsl.RelatedChange}, "h", f)
		}, func(s *scene.Stage) {
			s.Set("a", "spec", "ref")
			s.Create(scene.ConfigMapIn("default", "a"))
		}},
	}
	for cause, tt := range tests {
		t.Run(string(cause), func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) { tt.declare(foo, fails(j)) }, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Settle()
				if tt.cause != nil {
					tt.cause(s)
				}
				s.Called("h " + string(cause))
				for range 2 {
					annotate(s, map[string]string{retryKey: "h"})
					got := s.Take()
					if len(got) != 1 {
						s.T.Errorf("calls after a retry: %v, want one", got)
					}
				}
				annotate(s, map[string]string{retryKey: "h"})
				s.Called() // it has succeeded
			}})
		})
	}
}

// TestARetryOfGarbage holds that names of no handler make no long lines and Events, however many they are.
func TestARetryOfGarbage(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: scene.Syncs, Play: func(s *scene.Stage) {
		log := scene.LaunchWithLog(s, "annotation names a handler that does not exist")
		s.Create(scene.Web)
		s.Settle()
		annotate(s, map[string]string{retryKey: strings.Repeat("ab,", 60_000)})
		lines := log()
		for _, e := range s.Events() {
			lines = append(lines, fmt.Sprint(e))
		}
		if len(lines) != 2 {
			t.Fatalf("there are %d lines and Events, want one of each", len(lines))
		}
		for _, text := range lines {
			if len(text) > 4000 {
				t.Errorf("%d bytes: %.100s", len(text), text)
			}
		}
		wantTaken(s)
	}})
}
