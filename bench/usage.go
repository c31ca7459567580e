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
	// quietFor is how long a program must have used no more processor time than quietUsage to be at rest.
	quietFor   = time.Second
	quietUsage = 20 * time.Millisecond
)

// cpu is the processor time that the program has taken so far.
func (p *process) cpu() (time.Duration, error) { return processor(p.cmd.Process.Pid) }

// processor is the processor time that a process has taken so far: that of its threads, which the kernel counts in
// nanoseconds. Go programs do not end threads that have done work.
func processor(pid int) (time.Duration, error) {
	folder := fmt.Sprintf("/proc/%d/task", pid)
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

// memory is how many bytes a program has in memory: now, of that its own and pages of files, and at most so far.
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
