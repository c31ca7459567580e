// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
)

func TestASmallHeapGrowsToTheFloor(t *testing.T) {
	tests := map[string]struct {
		usual       int
		live, floor uint64
		want        int
	}{
		"a heap that holds nothing yet":                   {usual: 100, floor: 32 << 20, want: 3100},
		"a small heap":                                    {usual: 100, live: 8 << 20, floor: 32 << 20, want: 300},
		"a heap for which the usual percentage is enough": {usual: 100, live: 20 << 20, floor: 32 << 20, want: 100},
		"a heap above the floor":                          {usual: 100, live: 64 << 20, floor: 32 << 20, want: 100},
		"a large heap":                                    {usual: 100, live: 128 << 20, floor: 32 << 20, want: 50},
		"a very large heap":                               {usual: 100, live: 1 << 30, floor: 32 << 20, want: 33},
		"a large heap whose program says how often":       {usual: 200, live: 1 << 30, floor: 32 << 20, want: 200},
		"a process with a small limit":                    {usual: 100, live: 8 << 20, floor: 12 << 20, want: 100},
		"a program that collects seldom":                  {usual: 800, live: 8 << 20, floor: 32 << 20, want: 800},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := percent(test.usual, test.live, test.floor); got != test.want {
				t.Errorf("percentage %d, want %d", got, test.want)
			}
		})
	}
}

func TestTheFloorIsAQuarterOfASmallLimit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "memory.max")
	tests := map[string]struct {
		limit int64
		file  string
		want  uint64
	}{
		"no limit":               {limit: math.MaxInt64, file: "max\n", want: 32 << 20},
		"GOMEMLIMIT":             {limit: 64 << 20, file: "max\n", want: 16 << 20},
		"the container's limit":  {limit: math.MaxInt64, file: "67108864\n", want: 16 << 20},
		"a limit that is no sum": {limit: math.MaxInt64, file: "much\n", want: 32 << 20},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(file, []byte(test.file), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := floorOf(test.limit, limitOf(file)); got != test.want {
				t.Errorf("floor %d, want %d", got, test.want)
			}
		})
	}
	if got := limitOf(filepath.Join(t.TempDir(), "none")); got != math.MaxInt64 {
		t.Errorf("limit %d without a file, want none", got)
	}
}

// TestTheCollectorRunsAsUsualAfterTheLastBurst has two bursts at once, as two engines in a process have them. It follows the
// heap while that grows, and a percentage that somebody has set holds afterwards.
func TestTheCollectorRunsAsUsualAfterTheLastBurst(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	now := func() int {
		gogc, _ := collector()
		return gogc
	}
	var h heap
	h.burst()
	small := now()
	h.burst()
	h.rest()
	if got := now(); small <= 50 || got < small {
		t.Errorf("percentages %d in a burst and %d after one of two, want more than 50 in both", small, got)
	}
	follows := func(what string, yes func() bool) {
		for range 1000 { // a goroutine of the runtime sets it after each collection
			if runtime.GC(); yes() {
				return
			}
			runtime.Gosched()
		}
		t.Errorf("percentage %d after 1,000 collections of a heap that %s", now(), what)
	}
	func() {
		holds := make([]byte, 64<<20)
		follows("has grown", func() bool { return now() == 50 })
		runtime.KeepAlive(holds)
	}()
	follows("is small again", func() bool { return now() > 50 })
	h.rest()
	if got := now(); got != 50 {
		t.Errorf("percentage %d after the bursts, want 50", got)
	}
}

func TestAPercentageThatIsSetHolds(t *testing.T) {
	t.Run("by GOGC", func(t *testing.T) {
		t.Setenv("GOGC", "100")
		defer debug.SetGCPercent(debug.SetGCPercent(100))
		burstLeaves(t, 100)
	})
	t.Run("by off", func(t *testing.T) {
		t.Setenv("GOGC", "")
		defer debug.SetGCPercent(debug.SetGCPercent(-1))
		burstLeaves(t, -1)
	})
}

func burstLeaves(t *testing.T, want int) {
	t.Helper()
	var h heap
	h.burst()
	if got, _ := collector(); got != want {
		t.Errorf("percentage %d in a burst, want %d", got, want)
	}
	h.rest()
	if got, _ := collector(); got != want {
		t.Errorf("percentage %d after it, want %d", got, want)
	}
}
