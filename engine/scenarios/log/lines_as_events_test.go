// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package log_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestLinesOfHandlersAreEventsIfTheOperatorAsksForIt holds which lines of the log become Events, and that an error in the log does not take
// the place of the Event about a handler that keeps failing.
func TestLinesOfHandlersAreEventsIfTheOperatorAsksForIt(t *testing.T) {
	tests := map[string]struct {
		mode  dsl.EventsMode
		lines dsl.Func
		want  []string
	}{
		"a line of level 0, with values": {
			dsl.EventsLog, func(_ context.Context, r *dsl.Request) error { r.Log.Info("made", "size", 3); return nil },
			[]string{"Normal Logged work: made, size: 3"},
		},
		"a warning": {
			dsl.EventsLog, func(_ context.Context, r *dsl.Request) error {
				r.Log.WithValues("host", "a").Info("slow", logmark.Warning, true)
				return nil
			},
			[]string{"Warning Logged work: slow"},
		},
		"no line for those who debug": {
			dsl.EventsLog, func(_ context.Context, r *dsl.Request) error { r.Log.V(1).Info("looked"); return nil }, nil,
		},
		"an error, beside the Event about the handler that fails": {
			dsl.EventsLog, func(_ context.Context, r *dsl.Request) error {
				r.Log.Error(scene.ErrAgain, "asking failed")
				return dsl.Permanent(scene.ErrAgain)
			},
			[]string{"Warning HandlerFailed work: Handler work failed for good after 1 attempt: not yet", "Warning Logged work: asking failed: not yet"},
		},
		"no line without the setting": {
			dsl.EventsChanges, func(_ context.Context, r *dsl.Request) error { r.Log.Info("made"); return nil }, nil,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{
				Operator: func(foo *dsl.Resource, _ *kit.Journal) { foo.OnReconcile("work", tt.lines) },
				Play: func(s *scene.Stage) {
					s.Operator.Settings.Events = tt.mode
					s.Launch()
					s.Create(scene.Web)
					s.Advance(time.Minute)
					got := eventTexts(s)
					slices.Sort(got)
					if diff := cmp.Diff(tt.want, got); diff != "" {
						t.Errorf("Events (-want +got):\n%s", diff)
					}
				},
			})
		})
	}
}
