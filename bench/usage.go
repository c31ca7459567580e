// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// tick is the unit of processor times in /proc, which Linux has fixed.
	tick = 10 * time.Millisecond
	// quietFor is how long a program must have used next to no processor to be at rest, and
	// quietUsage what that is.
	quietFor   = time.Second
	quietUsage = 2 * tick
)

// cpu is the processor time that the program has taken so far: that of its threads, which the kernel counts in
// nanoseconds. Go programs do not end threads that have done work.
func (p *process) cpu() (time.Duration, error) {
	folder := fmt.Sprintf("/proc/%d/task", p.cmd.Process.Pid)
	threads, err := os.ReadDir(folder)
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, thread := range threads {
		data, err := os.ReadFile(filepath.Join(folder, thread.Name(), "schedstat"))
		if err != nil {
			return 0, err
		}
		var nanoseconds int64
		if _, err := fmt.Sscan(string(data), &nanoseconds); err != nil {
			return 0, fmt.Errorf("reading the usage of a thread: %w", err)
		}
		sum += time.Duration(nanoseconds)
	}
	return sum, nil
}

// settle waits until the program is at rest.
func (p *process) settle(ctx context.Context) error {
	clock := time.NewTicker(quietFor)
	defer clock.Stop()
	before, err := p.cpu()
	for err == nil {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-clock.C:
		}
		var now time.Duration
		if now, err = p.cpu(); err == nil && now-before <= quietUsage {
			return nil
		}
		before = now
	}
	return err
}

// memory is what a program has in memory, in bytes: now, of that its own and what it has of files, and at most so far.
type memory struct{ resident, anon, file, peak int64 }

func (p *process) memory() (memory, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return memory{}, err
	}
	var m memory
	into := map[string]*int64{"VmRSS": &m.resident, "RssAnon": &m.anon, "RssFile": &m.file, "VmHWM": &m.peak}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		to, wanted := into[name]
		if !wanted {
			continue
		}
		kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return m, fmt.Errorf("reading the memory of a process: %w", err)
		}
		*to = kilobytes << 10
	}
	return m, nil
}

// stat is what /proc says of a process: its parent, its own processor time, and that of its
// children that have ended.
type stat struct {
	parent          int
	own, ofChildren time.Duration
}

func readStat(pid int) (stat, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, err
	}
	// The name, in parentheses, may hold anything; what follows is numbers.
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if len(fields) < 15 {
		return stat{}, fmt.Errorf("reading the usage of process %d: %d fields", pid, len(fields))
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(fields[i])
		return n
	}
	return stat{
		parent: number(1), own: time.Duration(number(11)+number(12)) * tick,
		ofChildren: time.Duration(number(13)+number(14)) * tick,
	}, nil
}

// tree is the processor time of a program and everything that it started.
func tree(root int) time.Duration {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	all := map[int]stat{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if s, err := readStat(pid); err == nil {
			all[pid] = s
		}
	}
	var sum time.Duration
	for pid, s := range all {
		for at, found := pid, true; found && at > 1; {
			if at == root {
				sum += s.own + s.ofChildren
				break
			}
			var up stat
			up, found = all[at]
			at = up.parent
		}
	}
	return sum
}
