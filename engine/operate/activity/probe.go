// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// mostResult bounds the result of a probe in the answer to a request for all checks, in bytes.
const mostResult = 512

// probe is a check in Go.
type probe struct {
	hooks *Hooks
	h     *dsl.Handler

	mu  sync.Mutex
	run *inquiry // the call in progress, nil for none
}

// inquiry is one call of a probe, shared by all callers while it runs.
type inquiry struct {
	begun time.Time
	done  chan struct{}
	err   error // set when it is done
	// result is the JSON that the probe reports; empty for none.
	result string
}

func newProbe(x *Hooks, h *dsl.Handler) *probe {
	limited := *h
	limited.Timeout = cmp.Or(h.Timeout, dsl.DefaultProbeTimeout)
	return &probe{hooks: x, h: &limited}
}

// check calls the probe, or joins the call in progress. A probe that exceeds its timeout is not called again before it
// returns.
func (p *probe) check() ops.Check {
	run := p.join()
	out := ops.Check{Name: "probe/" + p.h.ID}
	timer := time.NewTimer(max(0, time.Until(run.begun.Add(p.h.Timeout))))
	defer timer.Stop()
	select {
	case <-run.done:
		if out.Message = run.result; run.err != nil {
			out.State, out.Message = ops.Fail, run.err.Error()
		}
	case <-timer.C:
		out.State, out.Message = ops.Fail, fmt.Sprintf("no answer for %s", time.Since(run.begun).Round(100*time.Millisecond))
	}
	return out
}

func (p *probe) join() *inquiry {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil {
		run := &inquiry{begun: time.Now(), done: make(chan struct{})}
		p.run = run
		go p.ask(run)
	}
	return p.run
}

func (p *probe) ask(run *inquiry) {
	defer func() {
		p.mu.Lock()
		p.run = nil
		p.mu.Unlock()
		close(run.done)
	}()
	span := transport.NewSpan(p.hooks.set.Held)
	h := *p.h
	h.Func = func(ctx context.Context, r *dsl.Request) (err error) {
		err = p.h.Func(ctx, r)
		run.result = takeResult(r)
		return err
	}
	run.err = once(p.hooks.ctx, &h, p.hooks.request(p.h, 1, span), time.Time{}, span)
}

// takeResult removes the result of a probe from its patch and returns it, because a probe changes no object.
func takeResult(r *dsl.Request) string {
	value, reported := r.Patch.Status[r.Handler]
	if !reported {
		return ""
	}
	delete(r.Patch.Status, r.Handler)
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return plain.Short(string(text), mostResult)
}
