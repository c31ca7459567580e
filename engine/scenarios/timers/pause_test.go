// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package timers_test

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAPauseCountsFromTheEndOfARun holds that a run comes when the last one has ended for as long, all its attempts counted in.
func TestAPauseCountsFromTheEndOfARun(t *testing.T) {
	minute := scene.WithoutJitter(dsl.Timing{Pause: time.Minute})
	passes := func(d time.Duration) func(*scene.Stage) { return func(s *scene.Stage) { s.Advance(d) } }
	delayed := func(d time.Duration) []dsl.Option { return []dsl.Option{dsl.InitialDelay(d)} }
	tests := map[string]struct {
		timing  dsl.Timing
		options []dsl.Option
		then    []dsl.Func
		play    func(*scene.Stage)
		want    []time.Duration
	}{
		"a run that takes no time":  {minute, nil, nil, passes(200 * time.Second), scene.Seconds(60, 120, 180)},
		"a run that takes its time": {minute, nil, []dsl.Func{scene.TakesTime(50 * time.Second)}, passes(400 * time.Second), scene.Seconds(60, 170, 280, 390)},
		"a run that is tried again": {minute, nil, []dsl.Func{scene.RetriesAfter(10 * time.Second), scene.Succeeds}, passes(200 * time.Second), scene.Seconds(60, 70, 130, 190)},
		"and for longer than the pause": {
			minute, nil, []dsl.Func{scene.RetriesAfter(100 * time.Second), scene.Succeeds}, passes(300 * time.Second), scene.Seconds(60, 160, 220, 280),
		},
		"a run that fails for good": {minute, nil, []dsl.Func{scene.Fails(dsl.Permanent(scene.ErrAgain))}, passes(130 * time.Second), scene.Seconds(60, 120)},
		"a delay before the first":  {minute, delayed(10 * time.Second), nil, passes(150 * time.Second), scene.Seconds(10, 70, 130)},
		"no delay at all":           {minute, delayed(0), nil, passes(70 * time.Second), scene.Seconds(0, 60)},
		"a delay that is worked out": {
			minute, []dsl.Option{dsl.InitialDelayFrom(func(s *dsl.Subject) time.Duration { return time.Duration(scene.SizeOf(s.Object)) * time.Second })}, nil,
			passes(70 * time.Second), scene.Seconds(1, 61),
		},
		"a delay that panics is none": {
			minute, []dsl.Option{dsl.InitialDelayFrom(func(*dsl.Subject) time.Duration { panic("broken") })}, nil, passes(70 * time.Second), scene.Seconds(0, 60),
		},
		"a delay with every, whose runs are counted from it": {
			scene.WithoutJitter(dsl.Timing{Every: time.Minute}), delayed(10 * time.Second), []dsl.Func{scene.TakesTime(30 * time.Second)}, passes(150 * time.Second), scene.Seconds(10, 70, 130),
		},
		"rest and pause": {scene.WithoutJitter(dsl.Timing{Pause: time.Minute, Idle: 90 * time.Second}), nil, nil, func(s *scene.Stage) {
			s.Advance(30 * time.Second)
			s.Resize(2)
			s.Advance(170 * time.Second)
		}, scene.Seconds(120, 180)},
		"rest and a delay": {scene.WithoutJitter(dsl.Timing{Idle: 30 * time.Second}), delayed(time.Minute), nil, func(s *scene.Stage) {
			s.Advance(100 * time.Second)
			s.Resize(2)
			s.Advance(100 * time.Second)
		}, scene.Seconds(60, 130)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { playTimer(t, tt.timing, tt.options, tt.then, tt.play, tt.want...) })
	}
}
