// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package daemons_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestTheResultOfADaemonDecidesHowItGoesOn holds what is made of what it returns.
func TestTheResultOfADaemonDecidesHowItGoesOn(t *testing.T) {
	returning := func(results ...error) func(*dsl.Resource, *vigil) {
		return func(foo *dsl.Resource, v *vigil) {
			begun, n := time.Now(), 0
			foo.Daemon("watch", func(ctx context.Context, r *dsl.DaemonRequest) error {
				defer v.enter(r)()
				v.note("run %d at %v", r.Attempt, time.Since(begun).Round(time.Second))
				err := results[min(n, len(results)-1)]
				if n++; errors.Is(err, errRuns) {
					<-ctx.Done()
					return nil
				}
				return err
			}, dsl.WithBackoff(10*time.Second, time.Minute), dsl.When(red))
		}
	}
	flips := func(s *scene.Stage) {
		s.Set("blue", "spec", "color")
		s.Settle()
		s.Set("red", "spec", "color")
		s.Advance(time.Hour)
	}
	tests := map[string]struct {
		results []error
		play    func(s *scene.Stage)
		want    []string
	}{
		"nothing: it is done, also when its filters match again": {[]error{nil}, flips, []string{"run 1 at 0s"}},
		"an error for good: the same":                            {[]error{dsl.Permanent(scene.ErrAgain)}, flips, []string{"run 1 at 0s"}},
		"after a restart of the process it runs again": {[]error{nil}, func(s *scene.Stage) {
			s.Process.Restart()
			s.Settle()
		}, []string{"run 1 at 0s", "run 1 at 0s"}},
		"another object of the name is another one": {[]error{nil}, func(s *scene.Stage) {
			s.Remove()
			s.Create(scene.Web)
			s.Settle()
		}, []string{"run 1 at 0s", "run 1 at 0s"}},
		"a passing error: at the time that it says": {[]error{dsl.Temporary(scene.ErrAgain, 3*time.Second), errRuns},
			func(s *scene.Stage) { s.Advance(time.Minute) }, []string{"run 1 at 0s", "run 2 at 3s"}},
		"a wait is no attempt": {[]error{dsl.Waiting("the sun", 3*time.Second), errRuns},
			func(s *scene.Stage) { s.Advance(time.Minute) }, []string{"run 1 at 0s", "run 1 at 3s"}},
		"one that stops in the time before its next run": {[]error{dsl.Temporary(scene.ErrAgain, time.Minute), errRuns},
			func(s *scene.Stage) {
				s.Set("blue", "spec", "color")
				s.Advance(time.Hour)
			}, []string{"run 1 at 0s"}},
		"what was asked to stop is not done": {[]error{errRuns}, func(s *scene.Stage) {
			s.Set("blue", "spec", "color")
			s.Settle()
			s.Set("red", "spec", "color")
			s.Settle()
		}, []string{"run 1 at 0s", "run 1 at 0s"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			playDaemon(t, returning(tt.results...), func(s *scene.Stage, v *vigil) {
				s.Begin()
				tt.play(s)
				v.want(tt.want...)
			})
		})
	}
}

// errRuns has a daemon of a test run until it stops.
var errRuns = errors.New("it runs")
