// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import "time"

// leastTime is the shortest period of a timer, and the shortest limit of a state. A shorter one would keep a process busy with one object.
const leastTime = time.Second

// checkTiming reports times that contradict each other.
func (h *Handler) checkTiming(c check) {
	t := h.Timing
	if t == nil {
		return
	}
	t.checkTimes(c)
	again := t.repeats()
	never := !again && t.At == nil
	h.checkTimed(c, never)
	switch {
	case again && t.At != nil && !h.ResourceWide:
		c.unwanted("at", "excludes every, pause, cron and idle")
	case !again && t.Jitter != 0:
		c.note(Fault{Unwanted: true, Lacks: "every"}, "jitter", "is only for timers (every, pause, cron or idle)")
	case never && t.TimeZone == "" && !h.ResourceWide:
		c.fault("", "it has a timer without a time (want at, every, pause, cron or idle)")
	}
	t.checkCron(c)
}

// repeats reports whether the timing has a time other than At.
func (t *Timing) repeats() bool { return t.Every != 0 || t.Pause != 0 || t.Idle != 0 || t.Cron != "" }

// checkTimed checks that a handler with a timing has the cause timer.
func (h *Handler) checkTimed(c check, never bool) {
	if !never && len(h.Causes) > 0 && !h.On(Timer) {
		c.fault("causes", "it has a time, but not the cause %s", Timer)
	}
}

func (t *Timing) checkCron(c check) {
	if t.Cron == "" {
		return
	}
	zone := t.TimeZone
	if err := checkZone(zone); err != nil {
		c.fault("timeZone", "%w", err)
		zone = ""
	}
	if _, err := parseCron(t.Cron, zone); err != nil {
		c.fault("cron", "%w", err)
	}
}

// checkTimes checks each time on its own, and that they do not exclude each other.
func (t *Timing) checkTimes(c check) {
	if min(t.Every, t.Pause, t.Idle) < 0 {
		c.fault("every", "every, pause and idle must not be negative")
	}
	if t.Every > 0 && t.Every < leastTime {
		c.fault("every", "must be at least %v, found %v", leastTime, t.Every)
	}
	if t.Pause > 0 && t.Pause < leastTime {
		c.fault("pause", "must be at least %v, found %v", leastTime, t.Pause)
	}
	if t.Every > 0 && t.Cron != "" {
		c.unwanted("every", "excludes cron")
	}
	if t.Pause > 0 && (t.Every > 0 || t.Cron != "") {
		c.unwanted("pause", "excludes every and cron: it counts from the end of a run, and these do not")
	}
	if t.TimeZone != "" && t.Cron == "" {
		c.note(Fault{Unwanted: true, Lacks: "cron"}, "timeZone", "is only for cron")
	}
}
