// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package failures_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// clock notes when a handler was called, as the time since the start of the scenario.
type clock struct {
	begun time.Time
	at    []time.Duration
}

func (c *clock) handler(then ...dsl.Func) dsl.Func {
	n := 0
	return func(ctx context.Context, r *dsl.Request) error {
		if c.begun.IsZero() {
			c.begun = time.Now()
		}
		c.at = append(c.at, time.Since(c.begun))
		do := then[min(n, len(then)-1)]
		n++
		return do(ctx, r)
	}
}

// TestTheBackOffGrows is law 8: the waits between attempts, to the nanosecond where there is no jitter.
func TestTheBackOffGrows(t *testing.T) {
	tests := map[string]struct {
		then    []dsl.Func
		options []dsl.Option
		// least are the waits without their jitter, which adds up to a fifth.
		least  []time.Duration
		jitter bool
	}{
		"the wait doubles from a second to five minutes": {
			then: []dsl.Func{scene.Fails(scene.ErrAgain)}, jitter: true,
			least: scene.Seconds(1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300),
		},
		"its bounds can be set": {
			then: []dsl.Func{scene.Fails(scene.ErrAgain)}, jitter: true,
			options: []dsl.Option{dsl.WithBackoff(3*time.Second, 10*time.Second)},
			least:   scene.Seconds(3, 6, 10, 10, 10),
		},
		"a temporary error says when": {
			then:  []dsl.Func{scene.RetriesAfter(7 * time.Second), scene.RetriesAfter(time.Second), scene.RetriesAfter(time.Minute), scene.RetriesAfter(time.Hour)},
			least: scene.Seconds(7, 1, 60, 3600),
		},
		"a temporary error of no time is tried again at once": {
			then:  []dsl.Func{scene.RetriesAfter(0), scene.RetriesAfter(0), scene.RetriesAfter(time.Hour)},
			least: scene.Seconds(0, 0, 3600),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := &clock{}
			scene.Play(t, scene.Scenario{
				Operator: func(foo *dsl.Resource, _ *kit.Journal) {
					foo.OnReconcile("vain", c.handler(test.then...), test.options...)
				},
				Play: func(s *scene.Stage) {
					s.Launch()
					s.Create(scene.Web)
					s.Advance(2 * time.Hour)
				},
			})
			for i, least := range test.least {
				most := least
				if test.jitter {
					most += least / 5
				}
				// Nothing takes time here, so what is more than the wait is a fault.
				if wait := c.at[i+1] - c.at[i]; wait < least || wait > most+time.Microsecond {
					t.Errorf("wait %d is %v, want %v to %v", i, wait, least, most)
				}
			}
		})
	}
}

func TestAHandlerThatFailsIsRetried(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a new change cuts the wait short and starts the attempts again": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("vain", j.Note("vain", scene.RetriesAfter(time.Hour)))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Hour)
				s.Called("vain create", "vain create 2")
				s.Resize(2)
				s.Called("vain create")
			},
		},
		"a change that the handler does not look at leaves the wait": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("vain", j.Note("vain", scene.RetriesAfter(time.Hour)), dsl.Field("spec.size"))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("vain create")
				s.Set("blue", "spec", "color")
				s.Set("x", "status", "theirs")
				s.Called()
				s.Advance(time.Hour)
				s.Called("vain create 2")
			},
		},
		"a change of a child cuts the wait short, for it may be what is waited for": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnReconcile("child", scene.KeepsDeployment)
				foo.OnReconcile("vain", j.Note("vain", scene.RetriesAfter(time.Hour)))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("vain create")
				s.RollOut(1)
				s.Called("vain create 2")
			},
		},
		"retries are counted without the first attempt": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("vain", j.Note("vain", scene.Fails(scene.ErrAgain)), dsl.Retries(2))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Hour)
				s.Called("vain create", "vain create 2", "vain create 3")
				events := s.Events()
				if len(events) != 1 || events[0].Reason != "HandlerFailed" || events[0].Action != "vain" {
					s.T.Errorf("events %+v", events)
				}
			},
		},
		"no retries are one attempt": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("vain", j.Note("vain", scene.Fails(scene.ErrAgain)), dsl.Retries(0))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Hour)
				s.Called("vain create")
			},
		},
		"one that waits does not keep others of the object waiting": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "vain", j.Note("vain", scene.RetriesAfter(time.Hour)))
				foo.On(scene.CreateAndUpdate(), "short", j.Note("short", scene.RetriesAfter(time.Second), scene.Succeeds))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Minute)
				s.Called("vain create", "short create", "short create 2")
			},
		},
		"a faulty patch is a permanent failure": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("wrong", j.Note("wrong", func(_ context.Context, r *dsl.Request) error {
					r.Patch.Set("status.x", 1)
					return nil
				}))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Hour)
				s.Called("wrong create")
				s.Wrote()
			},
		},
	})
}

// TestAWaitHoldsNoGoroutine is law 8: what waits holds no goroutine.
func TestAWaitHoldsNoGoroutine(t *testing.T) {
	const many = 1000
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, _ *kit.Journal) { foo.OnReconcile("vain", scene.RetriesAfter(time.Hour)) },
		Play: func(s *scene.Stage) {
			s.Launch()
			before := runtime.NumGoroutine()
			for i := range many {
				s.Create(fmt.Sprintf(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web-%d}}`, i))
			}
			s.Advance(time.Minute)
			if more := runtime.NumGoroutine() - before; more > 10 {
				s.T.Errorf("%d retries wait and hold %d goroutines", many, more)
			}
		},
	})
}

// TestAWaitHoldsNoWorker is law 8 as well: with one worker, others are handled while one waits.
func TestAWaitHoldsNoWorker(t *testing.T) {
	const second = `{apiVersion: example.com/v1, kind: Foo, metadata: {name: second}, spec: {size: 1}}`
	scene.PlayAll(t, map[string]scene.Scenario{
		"one that is to be tried again": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Workers = 1
				foo.OnReconcile("vain", j.Note("vain", scene.RetriesAfter(time.Hour), scene.Succeeds))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Create(second)
				s.Called("vain create")
			},
		},
		"one that is parked": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Workers = 1
				scene.OwnsDeployment(foo, j)
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.HoldWatches(scene.Deployments)
				s.Resize(2)
				s.Called("child update")
				s.Resize(3)
				s.Create(second)
				s.Called("child create")
			},
		},
		"one that the breaker holds": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Workers = 1
				foo.OnReconcile("loop", j.Note("loop", func(_ context.Context, r *dsl.Request) error {
					if r.Object.GetName() == "web" {
						r.Patch.Label("seen", r.Object.GetResourceVersion())
					}
					return nil
				}))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Create(second)
				s.Called("loop create")
			},
		},
	})
}

// TestAHandlerKnowsItsAttempt holds what a handler gets to know of its attempts.
func TestAHandlerKnowsItsAttempt(t *testing.T) {
	var got []int
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnCreate("count", func(_ context.Context, r *dsl.Request) error {
				got = append(got, r.Attempt)
				if r.Attempt < 4 {
					return scene.ErrAgain
				}
				return nil
			})
		},
		Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Advance(time.Hour)
		},
	})
	if diff := cmp.Diff([]int{1, 2, 3, 4}, got); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

// TestARefusedWriteIsRetriedMoreAndMoreSlowly holds what happens when the server does not take what handlers want.
func TestARefusedWriteIsRetriedMoreAndMoreSlowly(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"the object is tried again, more and more slowly, and an Event says why": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnCreate("made", j.Note("made")) },
			Play: func(s *scene.Stage) {
				s.Forbid("patch", scene.Foos)
				s.Launch()
				s.Create(scene.Web)
				s.Advance(10 * time.Minute)
				if n := len(s.Process.Writes()); n < 5 || n > 20 {
					s.T.Errorf("%d tries in ten minutes", n)
				}
				events := s.Events()
				if len(events) != 1 || events[0].Reason != "WriteRefused" {
					s.T.Errorf("events %+v", events)
				}
				scene.WantUnwell(s, "patch")
				s.Allow("patch", scene.Foos)
				s.Advance(10 * time.Minute)
				if s.Web().GetAnnotations()[scene.StateAnnotation] == "" {
					s.T.Error("the object is not marked as handled")
				}
				scene.WantWell(s)
			},
		},
	})
}
