// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"
)

// phase is a part of a scenario that is measured: from a moment on, until something has come about and the subject is at
// rest.
type phase struct {
	name string
	at   time.Time
	// cpu is the processor time that the subject had taken when it began, server that of the control plane, and logged
	// how long the audit log was.
	cpu, server time.Duration
	logged      int64
}

// begin begins a phase of a subject that runs, or of one that is about to be started.
func (s *session) begin(name string, p *process) (phase, error) {
	out := phase{name: name, at: time.Now()}
	var err error
	if out.server, err = s.plane.cpu(); err != nil {
		return out, err
	}
	if p != nil {
		if out.cpu, err = p.cpu(); err != nil {
			return out, err
		}
	}
	out.logged, err = s.plane.logged()
	return out, err
}

// end waits until the subject is at rest and notes what the phase took: wall is its time up to the given moment, the
// requests are those for each of so many objects.
func (t *trial) end(ctx context.Context, ph phase, p *process, at time.Time, objects int) error {
	t.out[ph.name+"/wall"] = at.Sub(ph.at).Seconds()
	if err := p.settle(ctx); err != nil {
		return err
	}
	cpu, err := p.cpu()
	if err != nil {
		return err
	}
	server, err := t.plane.cpu()
	if err != nil {
		return err
	}
	sent, err := t.plane.requested(t.sub.agent, ph.logged)
	if err != nil {
		return err
	}
	t.out[ph.name+"/cpu"] = (cpu - ph.cpu).Seconds()
	t.out[ph.name+"/server"] = (server - ph.server).Seconds()
	t.out[ph.name+"/requests"] = float64(len(about(sent))) / float64(objects)
	t.out[ph.name+"/writes"] = float64(len(writes(sent)))
	return nil
}

// reached waits until everything is as the follower expects, then ends the phase and verifies the end state.
func (t *trial) reached(ctx context.Context, ph phase, p *process, w *follower, objects int, verify func(context.Context) error) error {
	running, done := p.while(ctx)
	defer done()
	at, err := w.reach(running)
	if err != nil {
		return err
	}
	if err := t.end(ctx, ph, p, at, objects); err != nil {
		return err
	}
	return verify(ctx)
}

// atRest notes what the program has in memory when it has had nothing to do for a while, and what processor time it
// took in that time. Except for pairs the first round is enough: memory varies little.
func (t *trial) atRest(ctx context.Context, name string, p *process) error {
	if t.round > 0 && t.against == "" {
		return nil
	}
	before, err := p.cpu()
	if err != nil {
		return err
	}
	if err := pause(ctx, t.rest); err != nil {
		return err
	}
	after, err := p.cpu()
	if err != nil {
		return err
	}
	m, err := p.memory()
	t.out[name+"/rss"], t.out[name+"/anon"] = float64(m.resident), float64(m.anon)
	t.out[name+"/file"], t.out[name+"/peak"] = float64(m.file), float64(m.peak)
	t.out[name+"/resting"] = (after - before).Seconds()
	return err
}

// pause waits for a time.
func pause(ctx context.Context, long time.Duration) error {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
