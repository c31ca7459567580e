// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/handwerk-dev/handwerk/bench/tell"
)

// life is what one program did from its cold start on.
type life struct {
	backlog, storm, restart phase
	// memory is at rest, after backlog and storm.
	memory memory
	// others is the part of the machine that other programs took, from 0 to 1.
	others float64
}

// phase is one part of it.
type phase struct {
	// wall is the time until all Foos had their status, or had been looked at.
	wall time.Duration
	// cpu is the processor time that the program took, until it was at rest.
	cpu time.Duration
	// server is the processor time that the control plane took meanwhile.
	server time.Duration
	// writes is the number of requests that changed something.
	writes int
}

func (l life) String() string {
	return fmt.Sprintf("backlog %s, storm %s, restart %s with %d writes, at rest %s (at most %s), others %.0f %%",
		l.backlog, l.storm, l.restart, l.restart.writes, megabytes(l.memory.resident), megabytes(l.memory.peak), 100*l.others)
}

func (p phase) String() string {
	return fmt.Sprintf("%.2f s (cpu %.2f s, server %.2f s)", p.wall.Seconds(), p.cpu.Seconds(), p.server.Seconds())
}

// life starts the program while no Foo has the status that it asks for, then changes all Foos as
// fast as the server takes it, then starts the program again.
func (s *session) life(ctx context.Context, sub subject) (life, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errSlow)
	defer cancel()
	var l life
	heard := listen()
	target := s.next()
	if err := s.foos.scale(ctx, target); err != nil {
		return l, err
	}
	w, err := s.foos.follow(ctx)
	if err != nil {
		return l, err
	}
	defer w.close()
	p, err := s.start(ctx, sub)
	if err != nil {
		return l, err
	}
	if err := s.works(ctx, p, w, target, &l); err != nil {
		_, _ = p.stop() // the first error counts
		return l, err
	}
	if _, err := p.stop(); err != nil {
		return l, err
	}
	l.restart, err = s.restart(ctx, sub)
	l.others = heard.share()
	return l, err
}

// works is the part of a life in which there is something to do.
func (s *session) works(ctx context.Context, p *process, w *follower, target int64, l *life) error {
	if err := s.phase(ctx, p, w, target, moment{p.started, s.plane.cpu()}, &l.backlog); err != nil {
		return err
	}
	target = s.next()
	begun := moment{time.Now(), s.plane.cpu()}
	if err := s.foos.scale(ctx, target); err != nil {
		return err
	}
	if err := s.phase(ctx, p, w, target, begun, &l.storm); err != nil {
		return err
	}
	l.storm.cpu -= l.backlog.cpu
	var err error
	l.memory, err = s.atRest(ctx, p)
	return err
}

// moment is when something begins, and the processor time that the control plane had taken then.
type moment struct {
	at     time.Time
	server time.Duration
}

// phase waits for the end of a phase. Its cpu is that since the program's start.
func (s *session) phase(ctx context.Context, p *process, w *follower, target int64, begun moment, out *phase) error {
	running, done := p.while(ctx)
	defer done()
	end, err := w.reach(running, s.objects, target)
	if err != nil {
		return err
	}
	out.wall = end.Sub(begun.at)
	if err := p.settle(ctx); err != nil {
		return err
	}
	out.server = s.plane.cpu() - begun.server
	out.cpu, err = p.cpu()
	return err
}

// restart starts the program when nothing is to be done, and waits until it has looked at all.
func (s *session) restart(ctx context.Context, sub subject) (phase, error) {
	var out phase
	before, err := s.foos.writes(ctx)
	if err != nil {
		return out, err
	}
	p, err := s.start(ctx, sub, "-n", fmt.Sprint(s.objects))
	if err != nil {
		return out, err
	}
	_, err = p.hear(ctx, func(l tell.Line) bool { return l.Looked })
	out.wall = time.Since(p.started)
	if err == nil {
		err = p.settle(ctx)
	}
	cpu, stopErr := p.stop()
	if err != nil {
		return out, err
	}
	if stopErr != nil {
		return out, stopErr
	}
	after, err := s.foos.writes(ctx)
	out.cpu, out.writes = cpu, after-before
	return out, err
}

// atRest is what the program has in memory when it has had nothing to do for a while.
func (s *session) atRest(ctx context.Context, p *process) (memory, error) {
	if err := p.settle(ctx); err != nil {
		return memory{}, err
	}
	timer := time.NewTimer(s.rest)
	defer timer.Stop()
	select {
	case <-timer.C:
		return p.memory()
	case <-ctx.Done():
		return memory{}, context.Cause(ctx)
	}
}
