// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// work is passes, so many in each second, for some time.
type work struct {
	rate int
	long time.Duration
}

func TestMemoryIsGivenBackWhenABurstIsOver(t *testing.T) {
	tests := map[string]struct {
		begins bool
		work   []work
		// freed is how often by the end of each of these, and a minute later.
		freed []int64
		end   int64
	}{
		"nothing happens":                           {work: []work{{0, time.Hour}}, freed: []int64{0}},
		"a process starts that has little to do":    {begins: true, work: []work{{0, time.Hour}}, freed: []int64{1}, end: 1},
		"a first listing":                           {begins: true, work: []work{{200, time.Minute}}, freed: []int64{0}, end: 1},
		"a burst":                                   {work: []work{{200, 10 * time.Second}}, freed: []int64{0}, end: 1},
		"a burst, and then a little work all along": {work: []work{{200, 10 * time.Second}, {2, time.Hour}}, freed: []int64{0, 1}, end: 1},
		"two bursts": {
			work:  []work{{200, 10 * time.Second}, {0, time.Minute}, {200, 10 * time.Second}, {0, time.Minute}},
			freed: []int64{0, 1, 1, 2}, end: 2,
		},
		"much work without a pause":  {work: []work{{50, time.Hour}}, freed: []int64{0}, end: 1},
		"little work without an end": {work: []work{{5, time.Hour}}, freed: []int64{0}},
		"a few objects at once":      {work: []work{{200, time.Second}}, freed: []int64{0}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var freed, bursts atomic.Int64
				x := NewTrimmer(TrimSettings{Burst: func() { bursts.Add(1) }, Rest: func() { bursts.Add(-1) }, Free: func() {
					if got := bursts.Load(); got != 0 {
						t.Errorf("memory was given back in %d bursts", got)
					}
					freed.Add(1)
				}})
				defer x.End()
				if test.begins {
					x.Begin()
				}
				for i, w := range test.work {
					for range int(w.long / time.Second) {
						for range w.rate {
							x.Passed()
						}
						<-time.After(time.Second)
					}
					if got := freed.Load(); got != test.freed[i] {
						t.Errorf("after work %d memory was given back %d times, want %d", i, got, test.freed[i])
					}
				}
				<-time.After(time.Minute)
				if got := freed.Load(); got != test.end {
					t.Errorf("in the end memory was given back %d times, want %d", got, test.end)
				}
			})
		})
	}
}

func TestSomeSecondsAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waited atomic.Int64
		start := time.Now()
		x := NewTrimmer(TrimSettings{Free: func() { waited.Store(int64(time.Since(start))) }})
		defer x.End()
		for range 10 * many {
			x.Passed()
		}
		<-time.After(time.Hour)
		if at := time.Duration(waited.Load()); at < period || at > 2*period {
			t.Errorf("memory was given back %v after the burst", at)
		}
	})
}

func TestNothingIsGivenBackAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rests := 0
		x := NewTrimmer(TrimSettings{Rest: func() { rests++ }, Free: func() { t.Error("memory was given back") }})
		x.Begin()
		x.End()
		x.Begin()
		<-time.After(time.Hour)
		if rests != 1 {
			t.Errorf("the burst ended %d times, want once", rests)
		}
	})
	var none *Trimmer
	none.Begin()
	none.Passed()
	none.End()
}
