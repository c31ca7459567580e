// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package failures_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestTheBreakerStopsAnObjectThatLoops is law 9: an object that loops is stopped, probed, and never kept from deletion.
func TestTheBreakerStopsAnObjectThatLoops(t *testing.T) {
	side := func(which string) dsl.Func {
		return func(_ context.Context, r *dsl.Request) error {
			if r.Object.GetAnnotations()["mended"] == "" {
				r.Patch.Label("side", which)
			}
			return nil
		}
	}
	loops := func(foo *dsl.Resource, j *kit.Journal) {
		foo.OnReconcile("left", j.Note("left", side("left")))
		foo.OnReconcile("right", j.Note("right", side("right")))
		foo.OnDelete("gone", j.Note("gone"))
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"an object whose handlers undo each other comes to rest for a minute, and says so": {Operator: loops, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Advance(time.Second)
			if first := len(s.Take()); first < 40 || first > 80 {
				s.T.Errorf("%d calls of two handlers before they were stopped", first)
			}
			s.Advance(50 * time.Second)
			s.Called()
			events := s.Events()
			if len(events) != 1 || events[0].Reason != "Looping" || events[0].Type != "Warning" || !strings.Contains(events[0].Note, "left, right") {
				s.T.Errorf("events %+v", events)
			}
			s.Advance(time.Hour)
			if n := len(s.Take()); n < 60*2 || n > 60*6 {
				s.T.Errorf("%d calls of two handlers in an hour's probes, want about two each a minute", n)
			}
			if n := len(s.Process.Writes()); n > 3 {
				s.T.Errorf("%d writes of handlers that undo each other before anything is written", n)
			}
		}},
		"one that gets on is let go on": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			count := func(odd int) dsl.Func {
				return func(_ context.Context, r *dsl.Request) error {
					n, _ := strconv.Atoi(r.Object.GetLabels()["n"])
					if n%2 == odd && n < 100 {
						r.Patch.Label("n", strconv.Itoa(n+1))
					}
					return nil
				}
			}
			foo.OnReconcile("even", count(0))
			foo.OnReconcile("odd", count(1))
		}, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Settle()
			if n := len(s.Process.Writes()); n != 50 {
				s.T.Errorf("%d writes, want 50: both count in one pass", n)
			}
			if events := s.Events(); len(events) > 0 {
				s.T.Errorf("events %+v", events)
			}
		}},
		"it can be deleted while it rests": {Operator: loops, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Forget()
			s.Remove()
			s.Called("gone delete")
			s.WantGone()
		}},
		"it works again when the reason has gone": {Operator: loops, Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(time.Second)
			s.Forget()
			s.Set("yes", "metadata", "annotations", "mended")
			s.Called()
			s.Advance(2 * time.Minute)
			s.Called("left update", "right update")
			s.Resize(5)
			s.Called("left update", "right update")
		}},
		"another object is not affected": {Operator: loops, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Forget()
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: second}}`)
			s.Settle()
			if len(s.Take()) == 0 {
				s.T.Error("no call for the other object")
			}
		}},
		"many changes by others are no loop": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Begin()
			for i := range int64(100) {
				s.Resize(i + 10)
				s.Called("sync update")
			}
		}},
	})
}
