// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package timers_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// counts is a handler that changes the essence each time.
func counts(_ context.Context, r *dsl.Request) error {
	n, _, _ := unstructured.NestedInt64(r.Object.Object, "spec", "runs")
	r.Patch.Set("spec.runs", n+1)
	return nil
}

func TestAnIdleTimerRunsWhenItsObjectRests(t *testing.T) {
	alone := scene.WithoutJitter(dsl.Timing{Idle: 5 * time.Minute})
	each := scene.WithoutJitter(dsl.Timing{Idle: 5 * time.Minute, Every: time.Minute})
	changes := func(every time.Duration, times int) func(*scene.Stage) {
		return func(s *scene.Stage) {
			for i := range times {
				s.Advance(every)
				s.Resize(int64(100 + i))
			}
		}
	}
	tests := map[string]struct {
		timing  dsl.Timing
		options []dsl.Option
		then    []dsl.Func
		play    func(*scene.Stage)
		writes  int
		want    []time.Duration
	}{
		"it runs once, and once after each change": {
			timing: alone,
			play: func(s *scene.Stage) {
				s.Advance(time.Hour)
				s.Resize(2)
				s.Advance(time.Hour)
			},
			want: scene.Seconds(300, 3900),
		},
		"each change resets it": {
			timing: alone,
			play: func(s *scene.Stage) {
				changes(4*time.Minute, 3)(s)
				s.Advance(time.Hour)
			},
			want: scene.Seconds(12*60 + 300),
		},
		"a status is no change": {
			timing: alone,
			play: func(s *scene.Stage) {
				s.Advance(4 * time.Minute)
				s.Set("x", "status", "theirs")
				s.Advance(time.Hour)
			},
			want: scene.Seconds(300),
		},
		"a handler with a field looks at that alone": {
			timing: alone, options: []dsl.Option{dsl.Field("spec.color")},
			play: changes(time.Minute, 10),
			want: scene.Seconds(300),
		},
		"with a period it runs in each that finds the object at rest": {
			timing: each,
			play: func(s *scene.Stage) {
				s.Advance(410 * time.Second)
				s.Resize(2)
				s.Advance(400 * time.Second)
			},
			want: scene.Seconds(300, 360, 720, 780),
		},
		"what it changes itself is no change": {
			timing: alone, then: []dsl.Func{counts},
			play:   func(s *scene.Stage) { s.Advance(time.Hour) },
			writes: 1,
			want:   scene.Seconds(300),
		},
		"with a period it does not starve itself": {
			timing: each, then: []dsl.Func{counts},
			play:   func(s *scene.Stage) { s.Advance(490 * time.Second) },
			writes: 4,
			want:   scene.Seconds(300, 360, 420, 480),
		},
		"one that fails is tried again while the object rests": {
			timing: alone, then: []dsl.Func{scene.RetriesAfter(time.Minute), scene.RetriesAfter(time.Minute), scene.Succeeds},
			play: func(s *scene.Stage) { s.Advance(time.Hour) },
			want: scene.Seconds(300, 360, 420),
		},
		"and waits again when it changes": {
			timing: alone, then: []dsl.Func{scene.RetriesAfter(time.Minute), scene.Succeeds},
			play: func(s *scene.Stage) {
				s.Advance(310 * time.Second)
				s.Resize(2)
				s.Advance(time.Hour)
			},
			want: scene.Seconds(300, 610),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			playTimer(t, test.timing, test.options, test.then, func(s *scene.Stage) {
				test.play(s)
				if n := len(s.Writes()); n != test.writes {
					s.T.Errorf("%d writes, want %d", n, test.writes)
				}
			}, test.want...)
		})
	}
}

// TestAnIdleTimerCountsFromTheStartOfItsProcess holds that a process counts from when it first sees an object.
func TestAnIdleTimerCountsFromTheStartOfItsProcess(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{"a process counts again": {
		Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Idle(time.Hour, "rest", j.Note("rest"))
		},
		Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(50 * time.Minute)
			s.Process.Restart()
			s.Advance(59 * time.Minute)
			s.Called()
			s.Advance(2*time.Minute + time.Second) // the jitter is a minute at most
			s.Called("rest timer")
		},
	}})
}

// TestACronTimerKeepsItsTimeZone holds that a schedule is read in its time zone, also when clocks are changed there.
func TestACronTimerKeepsItsTimeZone(t *testing.T) {
	tests := map[string]struct {
		cron  string
		begin time.Time
		want  []string
	}{
		"in summer nine o'clock comes an hour earlier": {
			"0 9 * * *", time.Date(2000, 3, 25, 0, 0, 0, 0, time.UTC),
			[]string{"Mar 25 08:00:00", "Mar 26 07:00:00"},
		},
		"in winter an hour later": {
			"0 9 * * *", time.Date(2000, 10, 28, 0, 0, 0, 0, time.UTC),
			[]string{"Oct 28 07:00:00", "Oct 29 08:00:00"},
		},
		"a time that the clocks skip is run when they do": {
			"30 2 * * *", time.Date(2000, 3, 25, 12, 0, 0, 0, time.UTC),
			[]string{"Mar 26 01:00:00", "Mar 27 00:30:00"},
		},
		"one that comes twice is run the first time": {
			"30 2 * * *", time.Date(2000, 10, 28, 12, 0, 0, 0, time.UTC),
			[]string{"Oct 29 00:30:00", "Oct 30 01:30:00"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var at []string
			scene.Play(t, scene.Scenario{
				Operator: func(foo *dsl.Resource, _ *kit.Journal) {
					foo.On([]dsl.Cause{dsl.Timer}, "nine", func(_ context.Context, r *dsl.Request) error {
						at = append(at, r.Now.UTC().Format("Jan 2 15:04:05"))
						return nil
					}, dsl.At(scene.WithoutJitter(dsl.Timing{Cron: test.cron, TimeZone: "Europe/Berlin"})))
				},
				Play: func(s *scene.Stage) {
					s.Advance(time.Until(test.begin))
					s.Begin()
					s.Advance(38 * time.Hour)
					scene.CompareLines(s.T, at, test.want...)
					s.Wrote()
				},
			})
		})
	}
}

// TestCronTimersOfManyObjectsAreSpread holds that objects do not run together, none early and none by more than a minute.
func TestCronTimersOfManyObjectsAreSpread(t *testing.T) {
	b := &beats{}
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, _ *kit.Journal) { foo.Cron("@hourly", "beat", b.handler()) },
		Play: func(s *scene.Stage) {
			for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: ` + name + `}}`)
			}
			s.Launch()
			b.begin()
			s.Advance(10*time.Hour + 2*time.Minute)
			all := map[time.Duration]bool{}
			for name, at := range b.at {
				for _, when := range at {
					late := when % time.Hour
					all[late.Truncate(time.Second)] = true
					if late > time.Minute {
						s.T.Errorf("%s ran %v late", name, late)
					}
				}
				if len(at) != 10 {
					s.T.Errorf("%s ran %d times in ten hours", name, len(at))
				}
			}
			if len(all) < 20 {
				s.T.Errorf("80 runs fall into %d seconds of the hour", len(all))
			}
		},
	})
}
