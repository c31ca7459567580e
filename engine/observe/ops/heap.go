// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
)

const (
	// floor is the size in bytes to which the heap grows in a burst before it is collected. GOGC's 100 % alone collects a
	// small heap so often that it costs up to a tenth of the processor time of a burst.
	floor = 32 << 20
	// ceiling is how many bytes of garbage a large heap has before it is collected in a burst: at GOGC's 100 % it would have
	// as much as it holds. Caches hold bytes, and hardly any pointers, so a collection of them costs little.
	ceiling = 64 << 20
	// least is the percentage with which even the largest heap is collected.
	least = 33
	// goDefault is the percentage of Go's runtime.
	goDefault = 100
	// part is the part of the process's memory that floor may take, at most.
	part = 4
	// memoryLimit is where a container finds its limit of memory, see https://docs.kernel.org/admin-guide/cgroup-v2.html.
	memoryLimit = "/sys/fs/cgroup/memory.max"
)

// process is the heap of the process: the runtime has one setting for all engines in it.
var process heap

// Process returns the settings for a process whose memory is the engine's to look after. In a burst the heap is
// collected when it has 32 MB, or a quarter of the process's limit if that is less, and not earlier, and a large one when it has
// 64 MB of garbage, unless GOGC is set. After it memory goes back to the system.
func Process() TrimSettings {
	return TrimSettings{Burst: process.burst, Rest: process.rest, Free: giveBack}
}

// giveBack gives memory back to the system: garbage, and pages of the program's file.
func giveBack() {
	debug.FreeOSMemory()
	freeFilePages()
}

// heap makes the runtime collect a small heap less often during a burst, a large one more often, and both as before when the
// burst is over. It changes nothing where GOGC is set in the environment or the collector is off. Its methods are safe for use by
// several goroutines.
type heap struct {
	mu sync.Mutex
	// bursts is the number of engines in a burst.
	bursts int
	// usual is the percentage outside bursts, set the one that holds.
	usual, set int
	floor      uint64
}

// burst begins a burst. [heap.rest] ends it.
func (h *heap) burst() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bursts++; h.bursts > 1 {
		return
	}
	usual, _ := collector()
	if h.usual, h.set = usual, usual; usual < 0 || os.Getenv("GOGC") != "" {
		return
	}
	h.floor = floorOf(debug.SetMemoryLimit(-1), limitOf(memoryLimit))
	h.follow()
}

// rest ends a burst.
func (h *heap) rest() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bursts--; h.bursts == 0 && h.set != h.usual {
		debug.SetGCPercent(h.usual)
	}
}

// follow sets the percentage for what lives in the heap now, and again after each collection until the burst is over. h.mu
// is held.
func (h *heap) follow() {
	_, live := collector()
	if want := percent(h.usual, live, h.floor); want != h.set {
		debug.SetGCPercent(want)
		h.set = want
	}
	runtime.AddCleanup(&collected{h}, func(h *heap) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.bursts > 0 {
			h.follow()
		}
	}, h)
}

// collected is garbage: the runtime says when it collects it.
type collected struct{ *heap }

// percent returns the percentage with which a heap with this much alive is collected when it has floor bytes, or ceiling of
// garbage. A percentage that is not Go's own is somebody's wish: it is the least.
func percent(usual int, live, floor uint64) int {
	live = max(live, 1<<20)
	if large := ceiling * 100 / int(live); usual == goDefault && large < usual {
		return max(least, large)
	}
	return max(usual, int(max(floor, live)-live)*100/int(live))
}

// floorOf returns floor, or less where one of the limits of the process's memory is small.
func floorOf(limits ...int64) uint64 {
	least := int64(floor)
	for _, limit := range limits {
		least = min(least, limit/part)
	}
	return uint64(least)
}

// limitOf returns the limit in a file of a control group, and math.MaxInt64 where there is none.
func limitOf(file string) int64 {
	data, _ := os.ReadFile(file) // other systems have no such file
	if limit, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil {
		return limit
	}
	return math.MaxInt64
}

// collector returns the collector's percentage, negative if it is off, and the bytes that the last collection found alive.
func collector() (gogc int, live uint64) {
	samples := []metrics.Sample{{Name: "/gc/gogc:percent"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	if percent := samples[0].Value.Uint64(); percent <= math.MaxInt32 {
		return int(percent), samples[1].Value.Uint64()
	}
	return -1, samples[1].Value.Uint64()
}
