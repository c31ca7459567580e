// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// noise tells how much of the machine others took.
type noise struct {
	since      time.Time
	busy, ours time.Duration
}

func listen() noise { return noise{time.Now(), busy(), tree(os.Getpid())} }

// share is the part of all cores that programs of others took since, from 0 to 1.
func (n noise) share() float64 {
	now := listen()
	others := (now.busy - n.busy) - (now.ours - n.ours)
	return max(0, others.Seconds()/now.since.Sub(n.since).Seconds()/float64(runtime.NumCPU()))
}

// busy is the time that the machine's cores have worked.
func busy() time.Duration {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(data), "\n")
	var sum time.Duration
	for i, field := range strings.Fields(line) {
		n, err := strconv.Atoi(field)
		if err == nil && i != 4 && i != 5 && i < 9 { // idle, waiting for disks, guests (counted as user)
			sum += time.Duration(n) * tick
		}
	}
	return sum
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
