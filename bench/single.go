// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/handwerk-dev/handwerk/bench/tell"
)

// idle is the memory of an operator that has no objects.
func (s *session) idle(ctx context.Context) (memory, error) {
	p, err := s.start(ctx, operator())
	if err != nil {
		return memory{}, err
	}
	m, err := s.atRest(ctx, p)
	_, stopErr := p.stop()
	return m, errors.Join(err, stopErr)
}

// cache is what the compact cache takes for the Foos.
func (s *session) cache(ctx context.Context) (tell.Line, error) {
	p, err := s.start(ctx, subject{name: "cache"})
	if err != nil {
		return tell.Line{}, err
	}
	line, err := p.hear(ctx, func(l tell.Line) bool { return l.Objects > 0 })
	_, stopErr := p.stop()
	return line, errors.Join(err, stopErr)
}

// between is the time between two changes of which the latency is taken.
const between = 20 * time.Millisecond

// latency returns, for one change after the other, the time from the sending of the request that
// changed a Foo to the call of its handler.
func (s *session) latency(ctx context.Context, sub subject) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errSlow)
	defer cancel()
	p, err := s.start(ctx, sub, "-trace", "-n", fmt.Sprint(s.objects))
	if err != nil {
		return nil, err
	}
	out, err := s.sample(ctx, p)
	_, stopErr := p.stop()
	return out, errors.Join(err, stopErr)
}

func (s *session) sample(ctx context.Context, p *process) ([]time.Duration, error) {
	if _, err := p.hear(ctx, func(l tell.Line) bool { return l.Looked }); err != nil {
		return nil, err
	}
	if err := p.settle(ctx); err != nil {
		return nil, err
	}
	var out []time.Duration
	clock := time.NewTicker(between)
	defer clock.Stop()
	for n := range s.samples {
		i := n % s.objects
		replicas := 1 + s.foos.asked[i]%10
		sent := time.Now()
		if err := s.foos.scaleOne(ctx, i, replicas); err != nil {
			return nil, err
		}
		line, err := p.hear(ctx, func(l tell.Line) bool { return l.Name == nameOf(i) && l.Replicas == replicas })
		if err != nil {
			return nil, err
		}
		out = append(out, time.Duration(line.At-sent.UnixNano()))
		select {
		case <-clock.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return out, nil
}

// children runs samples/foo, which has a Deployment and an Event for each Foo besides the status.
func (s *session) children(ctx context.Context) (life, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errSlow)
	defer cancel()
	var l life
	sub := subject{name: "operator", args: []string{"-children"}}
	heard := listen()
	before, err := s.foos.writes(ctx)
	if err != nil {
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
	// Without controllers no Deployment ever has available replicas.
	err = s.phase(ctx, p, w, 0, moment{p.started, s.plane.cpu()}, &l.backlog)
	if err == nil {
		l.memory, err = s.atRest(ctx, p)
	}
	if _, stopErr := p.stop(); err != nil || stopErr != nil {
		return l, errors.Join(err, stopErr)
	}
	after, err := s.foos.writes(ctx)
	if err != nil {
		return l, err
	}
	l.backlog.writes = after - before
	l.restart, err = s.restart(ctx, sub)
	l.others = heard.share()
	return l, err
}
