// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/guard"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// Chosen are the handlers that run in a reconcile at a time by a resource's lifecycle, of those that are due and not blocked. The
// error is its panic; the first one runs then.
func (js Attempts) Chosen(lifecycle dsl.Lifecycle, blocked func(*dsl.Handler) bool, now time.Time) (out []progress.Handler, err error) {
	var due []dsl.Due
	for _, j := range js.waiting(blocked, now) {
		due = append(due, dsl.Due{Handler: j.Reader.Handler, Cause: j.Cause, Attempt: j.Record.Attempts + 1})
	}
	if len(due) == 0 {
		return nil, nil
	}
	chosen, err := choose(lifecycle, due)
	for _, one := range chosen {
		i := slices.IndexFunc(js, func(j *Attempt) bool { return j.Reader.Handler == one.Handler })
		twice := slices.ContainsFunc(out, func(r progress.Handler) bool { return r.Handler == one.Handler })
		if i >= 0 && !twice {
			out = append(out, js[i].Reader)
		}
	}
	if len(out) == 0 {
		out = []progress.Handler{js.waiting(blocked, now)[0].Reader}
	}
	return out, err
}

// choose asks a lifecycle, which is others' code.
func choose(lifecycle dsl.Lifecycle, due []dsl.Due) (out []dsl.Due, err error) {
	if broke := guard.Call("lifecycle", func() { out = lifecycle(slices.Clone(due)) }); broke != nil {
		return nil, fmt.Errorf("choosing handlers: %w", broke)
	}
	return out, nil
}

// waiting are the jobs that could run at a time and have not.
func (js Attempts) waiting(blocked func(*dsl.Handler) bool, now time.Time) (out Attempts) {
	for _, j := range js {
		if !j.Ran && !j.Record.Done && j.Record.Waits(now) <= 0 && !blocked(j.Reader.Handler) {
			out = append(out, j)
		}
	}
	return out
}

// notRun reports whether there are handlers that could run at a time and were not chosen. If there are none, wait is the
// shortest time until a handler is to run; zero if no handler is.
func (js Attempts) notRun(blocked func(*dsl.Handler) bool, now time.Time) (wait time.Duration, some bool) {
	for _, j := range js {
		if w := j.Record.Waits(now); w > 0 && !j.Record.Done && (wait == 0 || w < wait) {
			wait = w
		}
	}
	return wait, len(js.waiting(blocked, now)) > 0
}

// Replace puts a job, nil for none, in the place of that of a handler.
func (js Attempts) Replace(r progress.Handler, now *Attempt) Attempts {
	i := slices.IndexFunc(js, func(j *Attempt) bool { return j.Reader.Handler == r.Handler })
	if now == nil {
		return slices.Delete(js, i, i+1)
	}
	js[i] = now
	return js
}
