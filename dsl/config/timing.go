// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
)

// timing checks a handler's timer.
func (w *watched) timing(at path, t *timing) []dsl.Option {
	if w.Has(at.Key("timeZone")) && t.Cron == "" {
		w.FaultKey(at.Key("timeZone"), "is only for cron")
	}
	if w.Has(at.Key("jitter")) && !t.given() {
		w.FaultKey(at.Key("jitter"), "is only for timers (every, cron or idle)")
	}
	if !t.given() {
		return nil
	}
	if t.Cron != "" {
		if w.Has(at.Key("every")) {
			w.FaultKey(at.Key("every"), "excludes cron")
		}
		if err := dsl.ParseCron("@daily", t.TimeZone); err != nil {
			w.Fault(at.Key("timeZone"), "%v", errors.Unwrap(err))
			return nil
		}
		if err := dsl.ParseCron(t.Cron, t.TimeZone); err != nil {
			w.Fault(at.Key("cron"), "%v", err)
			return nil
		}
	}
	return []dsl.Option{dsl.At(dsl.Timing{Every: t.Every, Cron: t.Cron, TimeZone: t.TimeZone, Idle: t.Idle, Jitter: t.Jitter})}
}

const notForSchedule = "is not for a schedule, which has no one object"

// notScheduled are the fields that mean nothing where there is no one object.
var notScheduled = []string{"causes", "when", "field", "labels", "annotations", "idle", "after", "finalizer", "onFailure", "old"}

// scheduled adds a handler that runs for the resource as a whole.
func (w *watched) scheduled(at path, h *handler) {
	h.whole = true
	for _, name := range notScheduled {
		if w.Has(at.Key(name)) {
			w.FaultKey(at.Key(name), "%s", notForSchedule)
		}
	}
	if !h.given() {
		w.Fault(at, "a schedule has a time (want every or cron)")
	}
	w.id(at.Key("id"), h.ID)
	timing := w.timing(at, &h.timing)
	attempts := w.attempts(at, h)
	built := w.action(at, h)
	if built == nil || timing == nil {
		return
	}
	options := slices.Concat(built.Options, timing, attempts, w.needs(at.Key("needs"), h, built))
	options = append(options, dsl.Described(described(h)), func(into *dsl.Handler) { into.ResourceWide = true })
	w.out.On([]dsl.Cause{dsl.Timer}, h.ID, built.Func, options...)
}
