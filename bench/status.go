// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// idleLife is that of a subject without objects.
func (s *session) idleLife(ctx context.Context, sub subject, out take) error {
	if err := newFoos(s.client, "bench-idle").clear(ctx); err != nil {
		return err
	}
	p, err := s.start(ctx, sub, errand{job: statusJob, namespace: "bench-idle", phase: idle})
	if err != nil {
		return err
	}
	// It has to have begun before it can be at rest.
	err = errors.Join(pause(ctx, 2*time.Second), s.atRest(ctx, idle, p, out))
	return errors.Join(err, p.stop())
}

// statusLife starts the subject while no Foo has the status that it asks for, then changes all Foos as fast as the server
// takes it, lets it rest, starts it again, and changes one Foo at a time.
func (s *session) statusLife(ctx context.Context, sub subject, out take) error {
	f := newFoos(s.client, "bench-status")
	if err := f.fresh(ctx, s.objects, s.size); err != nil {
		return err
	}
	w, err := follow(ctx, s.client, f.path, availableCell, f.all())
	if err != nil {
		return err
	}
	defer w.close()
	p, err := s.backlog(ctx, sub, f, w, backlog, out)
	if err != nil {
		return err
	}
	if s.wanted[storm] {
		err = s.storm(ctx, sub, p, f, w, out)
	}
	if err == nil && s.wanted[resting] {
		err = s.atRest(ctx, resting, p, out)
	}
	if err = errors.Join(err, p.stop()); err != nil || !s.wanted[restart] {
		return err
	}
	return s.restart(ctx, sub, f, w, out)
}

// backlog starts the subject over Foos that are not handled yet and returns it when all are, and it is at rest.
func (s *session) backlog(ctx context.Context, sub subject, f *foos, w *follower, name string, out take) (*process, error) {
	w.wantsAll(f.all(), 1)
	ph, err := s.begin(name, nil)
	if err != nil {
		return nil, err
	}
	p, err := s.start(ctx, sub, errand{job: statusJob, namespace: f.namespace, phase: name})
	if err != nil {
		return nil, err
	}
	ph.at = p.started
	if err := s.reached(ctx, ph, sub, p, w, f.all(), out, f.verifyStatus); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// storm changes all Foos.
func (s *session) storm(ctx context.Context, sub subject, p *process, f *foos, w *follower, out take) error {
	target := 2 + s.next()%(most-1) // not what they have from the beginning
	w.wantsAll(f.all(), target)
	ph, err := s.begin(storm, p)
	if err != nil {
		return err
	}
	if err := f.scale(ctx, target); err != nil {
		return err
	}
	return s.reached(ctx, ph, sub, p, w, f.all(), out, f.verifyStatus)
}

// restart starts the subject when nothing is to be done, waits until it has looked at all, and changes one at a time
// then.
func (s *session) restart(ctx context.Context, sub subject, f *foos, w *follower, out take) error {
	p, err := s.looksAtAll(ctx, sub, errand{job: statusJob, namespace: f.namespace, expected: f.all(), traced: s.wanted[react], phase: restart}, out)
	if p == nil {
		return err
	}
	if err == nil && out[restart+"/writes"] != 0 {
		err = fmt.Errorf("it wrote %.0f times though nothing was to be done", out[restart+"/writes"])
	}
	var changes []change
	if err == nil && s.wanted[react] {
		changes, err = s.oneByOne(ctx, sub, p, f, w, out)
	}
	if err = errors.Join(err, p.stop()); err != nil {
		return err
	}
	if s.wanted[react] {
		calls(p.looks, changes, out)
	}
	return nil
}

// looksAtAll starts a subject and measures until it has looked at all that the errand expects. The subject runs then, also
// with an error, unless it is nil.
func (s *session) looksAtAll(ctx context.Context, sub subject, e errand, out take) (*process, error) {
	ph, err := s.begin(e.phase, nil)
	if err != nil {
		return nil, err
	}
	p, err := s.start(ctx, sub, e)
	if err != nil {
		return nil, err
	}
	ph.at = p.started
	at, err := p.lookedAll(ctx, e.expected)
	if err == nil {
		err = s.end(ctx, ph, sub, p, at, e.expected, out)
	}
	return p, err
}

// crowdLife is a backlog of more and larger Foos, and the memory that the subject has after it.
func (s *session) crowdLife(ctx context.Context, sub subject, out take) error {
	f := newFoos(s.client, "bench-crowd")
	if err := f.fresh(ctx, s.many, 2450); err != nil {
		return err
	}
	w, err := follow(ctx, s.client, f.path, availableCell, f.all())
	if err != nil {
		return err
	}
	defer w.close()
	p, err := s.backlog(ctx, sub, f, w, "crowd", out)
	if err != nil {
		return err
	}
	err = s.atRest(ctx, crowd, p, out)
	return errors.Join(err, p.stop(), f.clear(ctx))
}
