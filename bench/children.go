// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
)

// childrenLife starts the subject over Foos without ConfigMaps, and then deletes some of those that it has made.
func (s *session) childrenLife(ctx context.Context, sub subject, out take) error {
	f, statuses, err := s.fresh(ctx, "bench-children", s.parents, s.size)
	if err != nil {
		return err
	}
	defer statuses.close()
	configs, err := follow(ctx, s.client, f.configs, dataCell, 0)
	if err != nil {
		return err
	}
	defer configs.close()
	p, err := s.family(ctx, sub, f, statuses, configs, out)
	if err != nil {
		return err
	}
	if s.wanted[heal] {
		err = s.heal(ctx, sub, p, f, configs, out)
	}
	return errors.Join(err, p.stop())
}

// family starts the subject and returns it when all ConfigMaps and all statuses are there.
func (s *session) family(ctx context.Context, sub subject, f *foos, statuses, configs *follower, out take) (*process, error) {
	statuses.wantsAll(f.all(), 1)
	configs.wantsAll(f.all(), 1)
	ph, err := s.begin(children, nil)
	if err != nil {
		return nil, err
	}
	p, err := s.start(ctx, sub, errand{job: childrenJob, namespace: f.namespace, phase: children})
	if err != nil {
		return nil, err
	}
	ph.at = p.started
	running, done := p.while(ctx)
	defer done()
	at, err := configs.reach(running)
	if err == nil {
		err = s.reached(ctx, ph, sub, p, statuses, f.all(), out, f.verifyBoth)
	}
	if err != nil {
		return nil, errors.Join(err, p.stop())
	}
	// What came last counts.
	out[children+"/wall"] = max(out[children+"/wall"], at.Sub(ph.at).Seconds())
	return p, nil
}

func (f *foos) verifyBoth(ctx context.Context) error {
	return errors.Join(f.verifyStatus(ctx), f.verifyConfigs(ctx))
}

// heal deletes some ConfigMaps and waits until they are back.
func (s *session) heal(ctx context.Context, sub subject, p *process, f *foos, configs *follower, out take) error {
	lost := min(s.lost, f.all())
	before := configs.deletions()
	ph, err := s.begin(heal, p)
	if err != nil {
		return err
	}
	if err := f.remove(ctx, f.configs, lost); err != nil {
		return err
	}
	// Each is seen to go, and then to come back.
	if err := configs.until(ctx, func() bool { return configs.gone == before+lost }); err != nil {
		return err
	}
	return s.reached(ctx, ph, sub, p, configs, lost, out, f.verifyBoth)
}

// deletionLife starts the subject over Foos, waits until all have its finalizer, and deletes them all.
func (s *session) deletionLife(ctx context.Context, sub subject, out take) error {
	f, w, err := s.fresh(ctx, "bench-deletion", s.parents, s.size)
	if err != nil {
		return err
	}
	defer w.close()
	p, err := s.start(ctx, sub, errand{job: finalizerJob, namespace: f.namespace, phase: deletion})
	if err != nil {
		return err
	}
	running, done := p.while(ctx)
	defer done()
	err = f.held(running)
	if err == nil {
		err = p.settle(running)
	}
	if err == nil {
		err = s.deletion(running, sub, p, f, w, out)
	}
	return errors.Join(err, p.stop())
}

func (s *session) deletion(ctx context.Context, sub subject, p *process, f *foos, w *follower, out take) error {
	w.wantsAll(f.all(), absent)
	ph, err := s.begin(deletion, p)
	if err != nil {
		return err
	}
	if err := f.remove(ctx, f.path, f.all()); err != nil {
		return err
	}
	return s.reached(ctx, ph, sub, p, w, f.all(), out, f.verifyGone)
}
