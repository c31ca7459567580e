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
// takes it, lets it rest, starts it again, and changes one Foo at a time. Without a backlog it begins with the second start.
func (s *session) statusLife(ctx context.Context, sub subject, out take) error {
	f, w, err := s.statusFoos(ctx, sub)
	if err != nil {
		return err
	}
	defer w.close()
	if s.wanted[backlog] {
		err = s.firstStart(ctx, sub, f, w, out)
	}
	if err == nil && s.wanted[restart] {
		err = s.restart(ctx, sub, f, w, out)
	}
	if err == nil && s.wanted[resync] && sub.resyncs {
		err = s.resync(ctx, sub, f, out)
	}
	return err
}

// statusFoos returns new Foos for a backlog, and otherwise the handled ones. The follower must be closed in the end.
func (s *session) statusFoos(ctx context.Context, sub subject) (*foos, *follower, error) {
	if s.wanted[backlog] {
		return s.fresh(ctx, sub.namespace(), s.objects, s.size)
	}
	w, err := follow(ctx, s.client, s.handled.path, availableCell, s.handled.all())
	return s.handled, w, err
}

// prepare makes Foos and lets the minimal client write their statuses.
func (s *session) prepare(ctx context.Context) (*foos, error) {
	s.say("preparing %d Foos", s.objects)
	f, w, err := s.fresh(ctx, "bench-handled", s.objects, s.size)
	if err != nil {
		return nil, err
	}
	defer w.close()
	p, err := s.backlog(ctx, subjects[0], f, w, "prepare", take{})
	if err != nil {
		return nil, err
	}
	return f, p.stop()
}

// firstStart is what the subject does with a backlog, a storm after it, and rest.
func (s *session) firstStart(ctx context.Context, sub subject, f *foos, w *follower, out take) error {
	p, err := s.backlog(ctx, sub, f, w, backlog, out)
	if err != nil {
		return err
	}
	if s.wanted[storm] && !sub.still {
		err = s.storm(ctx, sub, p, f, w, out)
	}
	if err == nil && s.wanted[resting] {
		err = s.atRest(ctx, resting, p, out)
	}
	return errors.Join(err, p.stop())
}

// backlog starts the subject over Foos that are not handled yet and returns it when all are, and it is at rest.
func (s *session) backlog(ctx context.Context, sub subject, f *foos, w *follower, name string, out take) (*process, error) {
	verify, reported := f.verifyStatus, int64(1)
	if sub.still {
		verify, reported = func(context.Context) error { return nil }, 0
	}
	w.wantsAll(f.all(), reported)
	ph, err := s.begin(name, nil)
	if err != nil {
		return nil, err
	}
	p, err := s.start(ctx, sub, errand{job: statusJob, namespace: f.namespace, phase: name})
	if err != nil {
		return nil, err
	}
	ph.at = p.started
	if err := s.reached(ctx, ph, sub, p, w, f.all(), out, verify); err != nil {
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
	reacts := s.wanted[react] && !sub.still
	p, err := s.looksAtAll(ctx, sub, f, reacts, out)
	if p == nil {
		return err
	}
	if err == nil && s.wanted[resting] && !s.wanted[backlog] {
		err = s.atRest(ctx, resting, p, out)
	}
	var changes []change
	if err == nil && reacts {
		changes, err = s.oneByOne(ctx, sub, p, f, w, out)
	}
	if err = errors.Join(err, p.stop()); err == nil && reacts {
		calls(p.looks, changes, out)
	}
	return err
}

// looksAtAll starts a subject and measures until it has looked at all Foos. The subject runs then, also with an error, unless it
// is nil.
func (s *session) looksAtAll(ctx context.Context, sub subject, f *foos, traced bool, out take) (*process, error) {
	all := sub.handlers * f.all()
	ph, err := s.begin(restart, nil)
	if err != nil {
		return nil, err
	}
	p, err := s.start(ctx, sub, errand{job: statusJob, namespace: f.namespace, expected: all, traced: traced, phase: restart})
	if err != nil {
		return nil, err
	}
	ph.at = p.started
	at, err := p.lookedAll(ctx, all)
	if err == nil {
		err = s.end(ctx, ph, sub, p, at, f.all(), out)
	}
	if err == nil && out[restart+"/writes"] != 0 {
		err = fmt.Errorf("it wrote %.0f times though nothing was to be done", out[restart+"/writes"])
	}
	return p, err
}

// crowdLife is a backlog of more and larger Foos, and the memory that the subject has after it.
func (s *session) crowdLife(ctx context.Context, sub subject, out take) error {
	f, w, err := s.fresh(ctx, "bench-crowd", s.many, 2450)
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
