// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// probe is a check in Go.
type probe struct {
	hooks *Hooks
	h     *dsl.Handler

	mu  sync.Mutex
	run *inquiry // the one that is under way, nil when none is
}

// inquiry is one call of a probe, for all who ask while it runs.
type inquiry struct {
	begun time.Time
	done  chan struct{}
	err   error // once it is done
}

func newProbe(x *Hooks, h *dsl.Handler) *probe {
	limited := *h
	limited.Timeout = cmp.Or(h.Timeout, dsl.DefaultProbeTimeout)
	return &probe{hooks: x, h: &limited}
}

// check asks the probe, or joins the question that is under way. One that does not heed its timeout is not asked again before
// it has answered.
func (p *probe) check() ops.Check {
	run := p.join()
	out := ops.Check{Name: "probe/" + p.h.ID}
	timer := time.NewTimer(max(0, time.Until(run.begun.Add(p.h.Timeout))))
	defer timer.Stop()
	select {
	case <-run.done:
		if run.err != nil {
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
	run.err = once(p.hooks.ctx, p.h, p.hooks.request(p.h, 1, span), time.Time{}, span)
}
