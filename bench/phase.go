// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"
)

// phase is a part of a life that is measured: from a moment on, until something has come about and the subject is at
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
	out := phase{name: name, at: time.Now(), server: s.plane.cpu()}
	var err error
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
func (s *session) end(ctx context.Context, ph phase, sub subject, p *process, at time.Time, objects int, out take) error {
	out[ph.name+"/wall"] = at.Sub(ph.at).Seconds()
	if err := p.settle(ctx); err != nil {
		return err
	}
	cpu, err := p.cpu()
	if err != nil {
		return err
	}
	out[ph.name+"/cpu"] = (cpu - ph.cpu).Seconds()
	out[ph.name+"/server"] = (s.plane.cpu() - ph.server).Seconds()
	sent, err := s.plane.requested(sub.agent, ph.logged)
	if err != nil {
		return err
	}
	out[ph.name+"/requests"] = float64(len(about(sent))) / float64(objects)
	out[ph.name+"/writes"] = float64(len(writes(sent)))
	for kind, n := range kinds(sent) {
		out[ph.name+"/kind/"+kind] = float64(n) / float64(objects)
	}
	return nil
}

// reached waits until everything is as the follower expects, then ends the phase and verifies the end state.
func (s *session) reached(ctx context.Context, ph phase, sub subject, p *process, w *follower, objects int, out take, verify func(context.Context) error) error {
	running, done := p.while(ctx)
	defer done()
	at, err := w.reach(running)
	if err != nil {
		return err
	}
	if err := s.end(ctx, ph, sub, p, at, objects, out); err != nil {
		return err
	}
	return verify(ctx)
}

// atRest notes what the program has in memory when it has had nothing to do for a while, and what processor time it
// took in that time.
func (s *session) atRest(ctx context.Context, name string, p *process, out take) error {
	if err := p.settle(ctx); err != nil {
		return err
	}
	before, err := p.cpu()
	if err != nil {
		return err
	}
	if err := pause(ctx, s.rest); err != nil {
		return err
	}
	after, err := p.cpu()
	if err != nil {
		return err
	}
	m, err := p.memory()
	out[name+"/rss"], out[name+"/anon"] = float64(m.resident), float64(m.anon)
	out[name+"/file"], out[name+"/peak"] = float64(m.file), float64(m.peak)
	out[name+"/cpu"] = (after - before).Seconds()
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
