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

// Chosen returns the handlers that the resource's lifecycle chooses among attempts that could run. If the lifecycle
// panics, it returns the first one and the error.
func (js Attempts) Chosen(lifecycle dsl.Lifecycle) (out []progress.Handler, err error) {
	var due []dsl.Due
	for _, j := range js {
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
		out = []progress.Handler{js[0].Reader}
	}
	return out, err
}

// choose calls a lifecycle, which is the author's code.
func choose(lifecycle dsl.Lifecycle, due []dsl.Due) (out []dsl.Due, err error) {
	if broke := guard.Call("lifecycle", func() { out = lifecycle(slices.Clone(due)) }); broke != nil {
		return nil, fmt.Errorf("choosing handlers: %w", broke)
	}
	return out, nil
}

// runnable returns the attempts that could run now and have not.
func (p *run) runnable(st State) (out Attempts) {
	for _, j := range st.Attempts {
		if !j.Ran && !j.Record.Done && j.Record.Remaining(p.Now) <= 0 && p.blocker(st, j.Reader.Handler) == "" {
			out = append(out, j)
		}
	}
	return out
}

// backoff returns the shortest back-off of an attempt; zero for none.
func (js Attempts) backoff(now time.Time) (wait time.Duration) {
	for _, j := range js {
		if w := j.Record.Remaining(now); w > 0 && !j.Record.Done && (wait == 0 || w < wait) {
			wait = w
		}
	}
	return wait
}

// Replace replaces a handler's attempt; nil removes it.
func (js Attempts) Replace(r progress.Handler, now *Attempt) Attempts {
	i := slices.IndexFunc(js, func(j *Attempt) bool { return j.Reader.Handler == r.Handler })
	if now == nil {
		return slices.Delete(js, i, i+1)
	}
	js[i] = now
	return js
}
