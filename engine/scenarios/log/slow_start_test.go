// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package log_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestASlowStartSaysWhatItWaitsFor holds that the log has a line for what a start waits for when it takes more than a few seconds,
// another one when that changes, and one when it is over; and none of a start that is quick.
func TestASlowStartSaysWhatItWaitsFor(t *testing.T) {
	startup := func(s *scene.Stage) {
		s.Operator.OnStartup("connect", func(context.Context, *dsl.Request) error { <-time.After(7500 * time.Millisecond); return nil })
	}
	held := func(by func(gate <-chan struct{}) func(http.RoundTripper) http.RoundTripper) func(s *scene.Stage) func(*engine.Settings) {
		return func(s *scene.Stage) func(*engine.Settings) {
			s.Operator.Scope.Namespaces = []string{"default"}
			gate := make(chan struct{})
			time.AfterFunc(12500*time.Millisecond, func() { close(gate) })
			return func(e *engine.Settings) { e.Config.Wrap(by(gate)) }
		}
	}
	plain := func(slow func(s *scene.Stage)) func(s *scene.Stage) func(*engine.Settings) {
		return func(s *scene.Stage) func(*engine.Settings) { slow(s); return func(*engine.Settings) {} }
	}
	for name, test := range map[string]struct {
		slow func(s *scene.Stage) func(*engine.Settings)
		// after are the lines after 6, 11, 16 and 60 seconds.
		after [4][]string
	}{
		"nothing takes long": {slow: plain(func(*scene.Stage) {})},
		"the answer about a right": {
			held(func(gate <-chan struct{}) func(http.RoundTripper) http.RoundTripper {
				return scene.HoldsReviewsOf("default", gate)
			}),
			[4][]string{{`start takes long.*foos.v1.example.com: asking for the rights of the account`}, nil, {`operator has started after a wait.*13s`}, nil},
		},
		"the first listing": {
			plain(func(s *scene.Stage) {
				s.DelayNext("list", scene.Foos, 8500*time.Millisecond)
				s.DelayNext("watch", scene.Foos, 8500*time.Millisecond)
			}),
			[4][]string{{`start takes long.*foos.v1.example.com: listing`}, {`operator has started after a wait.*9s`}, nil, nil},
		},
		"a startup": {plain(startup), [4][]string{{`start takes long.*"waitsFor"="startup connect"`}, {`operator has started after a wait.*8s`}, nil, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{
				Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnReconcile("look", j.Note("look")) },
				Play: func(s *scene.Stage) {
					adjust := test.slow(s)
					log := scene.LaunchWithLog(s, "wait", adjust)
					_ = log()
					for i, wait := range []time.Duration{6, 5, 5, 44} {
						s.Advance(wait * time.Second)
						s.WantLines(log, test.after[i]...)
					}
				},
			})
		})
	}
}
