// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package daemons_test

import (
	"context"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// triesInVain is a daemon that notes each run, does something, and fails.
func (v *vigil) triesInVain(do func(ctx context.Context, r *dsl.DaemonRequest) error) dsl.DaemonFunc {
	return func(ctx context.Context, r *dsl.DaemonRequest) error {
		defer v.enter(r)()
		v.note("runs: %d, attempt %d", scene.SizeOf(r.Object), r.Attempt)
		if do != nil {
			if err := do(ctx, r); err != nil {
				return err
			}
		}
		return scene.ErrAgain
	}
}

// backOffScenario is an operator with a daemon that fails, and what happens to it.
type backOffScenario struct {
	operator func(*dsl.Resource, *vigil)
	play     func(v *vigil)
}

// failsHourly declares a daemon that does something and fails, with an hour between its attempts.
func failsHourly(do func(ctx context.Context, r *dsl.DaemonRequest) error, more ...dsl.Option) func(*dsl.Resource, *vigil) {
	return func(foo *dsl.Resource, v *vigil) {
		foo.Daemon("watch", v.triesInVain(do), append(more, dsl.WithBackoff(time.Hour, time.Hour))...)
	}
}

// playBackOff plays each scenario with web. S gets the stage.
func playBackOff(t *testing.T, s **scene.Stage, tests map[string]backOffScenario) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			playDaemon(t, test.operator, func(of *scene.Stage, v *vigil) {
				*s = of
				of.Launch()
				of.Create(scene.Web)
				test.play(v)
			})
		})
	}
}

// TestAChangeCutsTheBackOffOfADaemonShort holds which changes do.
func TestAChangeCutsTheBackOffOfADaemonShort(t *testing.T) {
	var s *scene.Stage
	playBackOff(t, &s, map[string]backOffScenario{
		"a change of the spec does, and attempts are counted again": {failsHourly(nil), func(v *vigil) {
			v.want("runs: 1, attempt 1")
			s.Advance(90 * time.Minute)
			v.want("runs: 1, attempt 2")
			s.Resize(2)
			v.want("runs: 2, attempt 1")
		}},
		"one that had used up its retries but for one has all of them again": {failsHourly(nil, dsl.Retries(1)), func(v *vigil) {
			v.want("runs: 1, attempt 1")
			s.Advance(time.Minute)
			s.Resize(2)
			s.Advance(90 * time.Minute)
			v.want("runs: 2, attempt 1", "runs: 2, attempt 2")
			s.Resize(3)
			s.Advance(90 * time.Minute)
			v.want() // it has failed for good
		}},
		"a change of the status does not": {failsHourly(nil), func(v *vigil) {
			v.want("runs: 1, attempt 1")
			s.Advance(time.Minute)
			s.Set("x", "status", "theirs")
			s.Advance(50 * time.Minute)
			v.want()
			s.Resize(2)
			v.want("runs: 2, attempt 1")
		}},
		"a wait for a time that it has asked for is cut short, too": {
			failsHourly(func(context.Context, *dsl.DaemonRequest) error { return dsl.Temporary(scene.ErrAgain, 2*time.Hour) }),
			func(v *vigil) {
				v.want("runs: 1, attempt 1")
				s.Advance(time.Minute)
				s.Resize(2)
				v.want("runs: 2, attempt 1")
			},
		},
		"so is one for others": {
			failsHourly(func(context.Context, *dsl.DaemonRequest) error { return dsl.Waiting("the others", 2*time.Hour) }),
			func(v *vigil) {
				v.want("runs: 1, attempt 1")
				s.Advance(time.Minute)
				s.Resize(2)
				v.want("runs: 2, attempt 1")
			},
		},
		"changes that come one upon the other have it run once a second": {failsHourly(nil), func(v *vigil) {
			v.want("runs: 1, attempt 1")
			s.Advance(time.Minute)
			for size := int64(2); size < 12; size++ {
				s.Resize(size)
				s.Advance(100 * time.Millisecond)
			}
			v.want("runs: 2, attempt 1", "runs: 11, attempt 1")
		}},
		"the delay before the first run is not cut short": {failsHourly(nil, dsl.InitialDelay(time.Hour)), func(v *vigil) {
			s.Advance(time.Minute)
			s.Resize(2)
			s.Advance(50 * time.Minute)
			v.want()
			s.Advance(10 * time.Minute)
			v.want("runs: 2, attempt 1")
		}},
		"where caches have keys alone, it does": {func(foo *dsl.Resource, v *vigil) {
			foo.Cache = dsl.CacheLive
			foo.OnReconcile("other", scene.Succeeds) // has passes look at it
			failsHourly(nil)(foo, v)
		}, func(v *vigil) {
			v.want("runs: 1, attempt 1")
			s.Advance(time.Minute)
			s.Resize(2)
			v.want("runs: 2, attempt 1")
		}},
		"one that is to stop meanwhile stops": {failsHourly(nil), func(v *vigil) {
			v.want("runs: 1, attempt 1")
			s.Remove()
			s.Settle()
			if s.Web() != nil {
				t.Error("the object is held")
			}
		}},
	})
}

// TestItsOwnChangesDoNotCutTheBackOffOfADaemonShort holds that a daemon which fails does not wake itself.
func TestItsOwnChangesDoNotCutTheBackOffOfADaemonShort(t *testing.T) {
	var s *scene.Stage
	playBackOff(t, &s, map[string]backOffScenario{
		"what the daemon has changed itself does not": {failsHourly(func(ctx context.Context, r *dsl.DaemonRequest) error {
			r.Patch.Set("spec.tried", r.Attempt)
			if err := r.Flush(ctx); err != nil {
				return err
			}
			r.Patch.Label("tried", "yes") // which is sent when it has failed
			return nil
		}), func(v *vigil) {
			v.want("runs: 1, attempt 1")
			s.Advance(50 * time.Minute)
			v.want()
			s.Resize(2)
			v.want("runs: 2, attempt 1")
		}},
		"nor does what it has changed while somebody writes the status": {failsHourly(func(ctx context.Context, r *dsl.DaemonRequest) error {
			s.Set(scene.SizeOf(s.Web())+int64(r.Attempt), "status", "theirs")
			r.Patch.Set("spec.tried", r.Attempt)
			return r.Flush(ctx)
		}), func(v *vigil) {
			v.want("runs: 1, attempt 1")
			s.Advance(50 * time.Minute)
			v.want()
		}},
		"what others have changed since it looked does": {failsHourly(func(context.Context, *dsl.DaemonRequest) error {
			if size := scene.SizeOf(s.Web()); size == 1 {
				s.Resize(2)
			}
			return nil
		}), func(v *vigil) {
			v.want("runs: 1, attempt 1")
			s.Advance(time.Second)
			v.want("runs: 2, attempt 1")
			s.Advance(30 * time.Minute)
			v.want()
		}},
		"what it has seen while it ran does not": {failsHourly(func(_ context.Context, r *dsl.DaemonRequest) error {
			if size := scene.SizeOf(s.Web()); size == 1 {
				s.Resize(2)
				<-r.Changes()
				_ = r.Current()
			}
			return nil
		}), func(v *vigil) {
			v.want("runs: 1, attempt 1")
			s.Advance(30 * time.Minute)
			v.want()
		}},
		"what others have changed beneath what it sends does": {failsHourly(func(ctx context.Context, r *dsl.DaemonRequest) error {
			if size := scene.SizeOf(s.Web()); size == 1 {
				s.Resize(2)
			}
			r.Patch.Set("spec.tried", true)
			return r.Flush(ctx)
		}), func(v *vigil) {
			v.want("runs: 1, attempt 1")
			s.Advance(time.Minute)
			v.want("runs: 2, attempt 1")
			s.Advance(30 * time.Minute)
			v.want()
		}},
	})
}
