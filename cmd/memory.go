// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

const (
	// gcPercent is the garbage at which the heap is collected, as a percentage of live data. Caches hold bytes with few pointers,
	// so a collection is cheap, and Go's default of 100 would double the memory of a first listing.
	gcPercent = 40
	// cgroupLimit is where a container finds its memory limit, see https://docs.kernel.org/admin-guide/cgroup-v2.html.
	cgroupLimit = "/sys/fs/cgroup/memory.max"
)

// tuneMemory sets the garbage collector of this process: how often it runs, and a soft limit at three quarters of the container's
// memory, since the runtime does not count all that the kernel does. GOGC and GOMEMLIMIT in the environment take precedence.
func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if limit, ok := memoryLimit(cgroupLimit); ok && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit / 4 * 3)
	}
}

// memoryLimit returns the bytes in a control group's file of a limit, and false without a limit or on a system without such a file.
func memoryLimit(file string) (int64, bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return limit, err == nil // "max" is no number
}
