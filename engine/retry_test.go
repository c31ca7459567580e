// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
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

// TestBackoff is law 8: the waits between attempts, to the nanosecond where there is no jitter.
func TestBackoff(t *testing.T) {
	tests := map[string]struct {
		then    []dsl.Func
		options []dsl.Option
		// least are the waits without their jitter, which adds up to a fifth.
		least  []time.Duration
		jitter bool
	}{
		"the wait doubles from a second to five minutes": {
			then: []dsl.Func{fails(errAgain)}, jitter: true,
			least: seconds(1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300),
		},
		"its bounds can be set": {
			then: []dsl.Func{fails(errAgain)}, jitter: true,
			options: []dsl.Option{dsl.WithBackoff(3*time.Second, 10*time.Second)},
			least:   seconds(3, 6, 10, 10, 10),
		},
		"a temporary error says when": {
			then:  []dsl.Func{temporary(7 * time.Second), temporary(time.Second), temporary(time.Minute), temporary(time.Hour)},
			least: seconds(7, 1, 60, 3600),
		},
		"a temporary error of no time is tried again at once": {
			then:  []dsl.Func{temporary(0), temporary(0), temporary(time.Hour)},
			least: seconds(0, 0, 3600),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := &clock{}
			perform(t, scenario{
				func(foo *dsl.Resource, _ *journal) { foo.OnReconcile("vain", c.handler(test.then...), test.options...) },
				func(s *stage) {
					s.Launch()
					s.Create(web)
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

func seconds(all ...int) []time.Duration {
	var out []time.Duration
	for _, n := range all {
		out = append(out, time.Duration(n)*time.Second)
	}
	return out
}

func TestRetries(t *testing.T) {
	scenarios(t, map[string]scenario{
		"a new change cuts the wait short and starts the attempts anew": {
			func(foo *dsl.Resource, j *journal) { foo.OnReconcile("vain", j.Note("vain", temporary(time.Hour))) },
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Advance(time.Hour)
				s.Called("vain create", "vain create 2")
				s.size(2)
				s.Called("vain create")
			},
		},
		"a change that the handler does not look at leaves the wait": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("vain", j.Note("vain", temporary(time.Hour)), dsl.Field("spec.size"))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("vain create")
				s.set("blue", "spec", "color")
				s.set("x", "status", "theirs")
				s.Called()
				s.Advance(time.Hour)
				s.Called("vain create 2")
			},
		},
		"a change of a child cuts the wait short, for it may be what is waited for": {
			func(foo *dsl.Resource, j *journal) {
				foo.Owns(deployments)
				foo.OnReconcile("child", keepsChild)
				foo.OnReconcile("vain", j.Note("vain", temporary(time.Hour)))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("vain create")
				s.rollout(1)
				s.Called("vain create 2")
			},
		},
		"retries are counted without the first attempt": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("vain", j.Note("vain", fails(errAgain)), dsl.Retries(2))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Advance(time.Hour)
				s.Called("vain create", "vain create 2", "vain create 3")
				events := s.Events()
				if len(events) != 1 || events[0].Reason != "HandlerFailed" || events[0].Action != "vain" {
					s.t.Errorf("events %+v", events)
				}
			},
		},
		"no retries are one attempt": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("vain", j.Note("vain", fails(errAgain)), dsl.Retries(0))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Advance(time.Hour)
				s.Called("vain create")
			},
		},
		"one that waits does not keep others of the object waiting": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "vain", j.Note("vain", temporary(time.Hour)))
				foo.On(both(), "short", j.Note("short", temporary(time.Second), succeeds))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Advance(time.Minute)
				s.Called("vain create", "short create", "short create 2")
			},
		},
		"a faulty patch is a permanent failure": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("wrong", j.Note("wrong", func(_ context.Context, r *dsl.Request) error {
					r.Patch.Set("status.x", 1)
					return nil
				}))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Advance(time.Hour)
				s.Called("wrong create")
				s.Wrote()
			},
		},
	})
}

// TestWaitingCostsNothing is law 8: what waits holds no goroutine.
func TestWaitingCostsNothing(t *testing.T) {
	const many = 1000
	perform(t, scenario{
		func(foo *dsl.Resource, _ *journal) { foo.OnReconcile("vain", temporary(time.Hour)) },
		func(s *stage) {
			s.Launch()
			before := runtime.NumGoroutine()
			for i := range many {
				s.Create(fmt.Sprintf(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web-%d}}`, i))
			}
			s.Advance(time.Minute)
			if more := runtime.NumGoroutine() - before; more > 10 {
				s.t.Errorf("%d retries wait and hold %d goroutines", many, more)
			}
		},
	})
}

// TestWaitingHoldsNoWorker is law 8 as well: with one worker, others are handled while one waits.
func TestWaitingHoldsNoWorker(t *testing.T) {
	const second = `{apiVersion: example.com/v1, kind: Foo, metadata: {name: second}, spec: {size: 1}}`
	scenarios(t, map[string]scenario{
		"one that is to be tried again": {
			func(foo *dsl.Resource, j *journal) {
				foo.Workers = 1
				foo.OnReconcile("vain", j.Note("vain", temporary(time.Hour), succeeds))
			}, func(s *stage) {
				s.begin()
				s.Create(second)
				s.Called("vain create")
			},
		},
		"one that is parked": {
			func(foo *dsl.Resource, j *journal) {
				foo.Workers = 1
				parent(foo, j)
			}, func(s *stage) {
				s.begin()
				s.HoldWatches(deployments)
				s.size(2)
				s.Called("child update")
				s.size(3)
				s.Create(second)
				s.Called("child create")
			},
		},
		"one that the breaker holds": {
			func(foo *dsl.Resource, j *journal) {
				foo.Workers = 1
				foo.OnReconcile("loop", j.Note("loop", func(_ ctx, r *dsl.Request) error {
					if r.Object.GetName() == "web" {
						r.Patch.Label("seen", r.Object.GetResourceVersion())
					}
					return nil
				}))
			}, func(s *stage) {
				s.begin()
				s.Create(second)
				s.Called("loop create")
			},
		},
	})
}

// TestAttempt holds what a handler gets to know of its attempts.
func TestAttempt(t *testing.T) {
	var got []int
	perform(t, scenario{
		func(foo *dsl.Resource, _ *journal) {
			foo.OnCreate("count", func(_ context.Context, r *dsl.Request) error {
				got = append(got, r.Attempt)
				if r.Attempt < 4 {
					return errAgain
				}
				return nil
			})
		},
		func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Advance(time.Hour)
		},
	})
	if diff := cmp.Diff([]int{1, 2, 3, 4}, got); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}
