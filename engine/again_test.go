// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestTheNextOfAName is law 1 for an object that has the name of one that is gone.
func TestTheNextOfAName(t *testing.T) {
	var s *stage
	scenarios(t, map[string]scenario{
		"one that appears while a pass finds the last one gone is new": {
			func(foo *dsl.Resource, j *journal) {
				foo.Cache = dsl.CacheLive
				foo.OnReconcile("sync", j.Note("sync"))
				foo.Every(time.Hour, "tick", succeeds, dsl.At(dsl.Timing{Every: time.Hour, Jitter: -1}))
			}, func(s *stage) {
				s.begin()
				s.HoldWatches(foos)
				s.remove()
				s.DelayNext("get", foos, 30*time.Second)
				s.Advance(time.Hour + 10*time.Second) // the timer's pass waits for its read
				s.Create(web)
				s.ReleaseWatches(foos)
				s.Advance(time.Minute)
				s.Called("sync create")
			},
		},
		"a delete handler of the last one is tried again in its time while the next one is parked": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnDelete("left", j.Note("left", temporary(20*time.Second), temporary(20*time.Second), succeeds), dsl.NoFinalizer())
				foo.OnReconcile("report", func(ctx context.Context, r *dsl.Request) error {
					if r.Cause == dsl.Create && len(s.Events()) == 0 {
						r.Events.Event(dsl.Normal, "First", "The first one.")
						return nil
					}
					s.HoldWatches(foos) // the cache does not catch up with the write of the status
					return reports(ctx, r)
				})
			}, func(on *stage) {
				s = on
				s.begin()
				s.remove()
				s.Create(web)
				s.Called("left delete")
				s.Advance(21 * time.Second)
				s.Called("left delete 2")
				s.Advance(20 * time.Second)
				s.Called("left delete 3")
			},
		},
	})
}
