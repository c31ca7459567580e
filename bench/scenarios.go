// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// idle is a subject without objects.
func (t *trial) idle(ctx context.Context) error {
	if err := newFoos(t.client, "bench-idle").clear(ctx); err != nil {
		return err
	}
	p, err := t.start(ctx, t.sub, errand{job: statusJob, namespace: "bench-idle"})
	if err != nil {
		return err
	}
	// It has to have begun before it can be at rest.
	err = errors.Join(pause(ctx, 2*time.Second), t.atRest(ctx, "idle", p))
	return errors.Join(err, p.stop())
}

// backlog starts the subject while no Foo has the status that it asks for, then changes many Foos as fast as the server
// takes it, and lets the subject rest.
func (t *trial) backlog(ctx context.Context) error {
	f, w, err := t.fresh(ctx, "bench-backlog", t.objects)
	if err != nil {
		return err
	}
	defer w.close()
	p, err := t.reports(ctx, "backlog", f, w)
	if err != nil {
		return err
	}
	err = t.storm(ctx, p, f, w)
	if err == nil {
		err = t.atRest(ctx, "backlog", p)
	}
	return errors.Join(err, p.stop())
}

// reports starts the subject over Foos that are not handled yet and returns it when all are, and it is at rest.
func (t *trial) reports(ctx context.Context, name string, f *foos, w *follower) (*process, error) {
	w.wantsAll(f.all(), 1)
	ph, err := t.begin(name, nil)
	if err != nil {
		return nil, err
	}
	p, err := t.start(ctx, t.sub, errand{job: statusJob, namespace: f.namespace})
	if err != nil {
		return nil, err
	}
	ph.at = p.started
	if err := t.reached(ctx, ph, p, w, f.all(), f.verifyStatus); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// storm changes many of the Foos.
func (t *trial) storm(ctx context.Context, p *process, f *foos, w *follower) error {
	const replicas = 2 // new Foos ask for 1
	w.wantsAll(t.parents(), replicas)
	ph, err := t.begin("storm", p)
	if err != nil {
		return err
	}
	if err := f.scale(ctx, t.parents(), replicas); err != nil {
		return err
	}
	return t.reached(ctx, ph, p, w, t.parents(), f.verifyStatus)
}

// prepare makes the Foos of the scenario restart and lets the minimal client write their statuses.
func (s *session) prepare(ctx context.Context) error {
	s.say("preparing %d Foos", s.objects)
	f, w, err := s.fresh(ctx, "bench-restart", s.objects)
	if err != nil {
		return err
	}
	defer w.close()
	p, err := (&trial{s, subjects[0], 0, take{}}).reports(ctx, "prepare", f, w)
	if err != nil {
		return err
	}
	s.handled = f
	return p.stop()
}

// restart starts the subject when nothing is to be done, waits until it has looked at all Foos, lets it rest, and then
// changes one Foo at a time.
func (t *trial) restart(ctx context.Context) error {
	f := t.handled
	w, err := follow(ctx, t.client, f.path, availableCell, f.all())
	if err != nil {
		return err
	}
	defer w.close()
	ph, err := t.begin("restart", nil)
	if err != nil {
		return err
	}
	p, err := t.start(ctx, t.sub, errand{job: statusJob, namespace: f.namespace, expected: f.all()})
	if err != nil {
		return err
	}
	ph.at = p.started
	err = t.looksAtAll(ctx, ph, p, f)
	if err == nil {
		err = t.atRest(ctx, "restart", p)
	}
	if err == nil {
		err = t.react(ctx, p, f, w)
	}
	return errors.Join(err, p.stop())
}

// looksAtAll ends the phase when the subject has looked at all Foos.
func (t *trial) looksAtAll(ctx context.Context, ph phase, p *process, f *foos) error {
	at, err := p.lookedAll(ctx, f.all())
	if err == nil {
		err = t.end(ctx, ph, p, at, f.all())
	}
	if err == nil && t.out["restart/writes"] != 0 {
		err = fmt.Errorf("it wrote %.0f times though nothing was to be done", t.out["restart/writes"])
	}
	return err
}

// children starts the subject over Foos without ConfigMaps, and when these are there deletes some.
func (t *trial) children(ctx context.Context) error {
	f, statuses, err := t.fresh(ctx, "bench-children", t.parents())
	if err != nil {
		return err
	}
	defer statuses.close()
	configs, err := follow(ctx, t.client, f.configs, dataCell, 0)
	if err != nil {
		return err
	}
	defer configs.close()
	statuses.wantsAll(f.all(), 1)
	configs.wantsAll(f.all(), 1)
	ph, err := t.begin("children", nil)
	if err != nil {
		return err
	}
	p, err := t.start(ctx, t.sub, errand{job: childrenJob, namespace: f.namespace})
	if err != nil {
		return err
	}
	ph.at = p.started
	err = t.family(ctx, ph, p, f, statuses, configs)
	if err == nil {
		err = t.heal(ctx, p, f, configs)
	}
	return errors.Join(err, p.stop())
}

// family ends the phase when all ConfigMaps and all statuses are there.
func (t *trial) family(ctx context.Context, ph phase, p *process, f *foos, statuses, configs *follower) error {
	running, done := p.while(ctx)
	defer done()
	at, err := configs.reach(running)
	if err != nil {
		return err
	}
	err = t.reached(ctx, ph, p, statuses, f.all(), f.verifyBoth)
	t.out["children/wall"] = max(t.out["children/wall"], at.Sub(ph.at).Seconds()) // what came last counts
	return err
}

// heal deletes some ConfigMaps and waits until they are back.
func (t *trial) heal(ctx context.Context, p *process, f *foos, configs *follower) error {
	before := configs.deletions()
	ph, err := t.begin("heal", p)
	if err != nil {
		return err
	}
	if err := f.remove(ctx, f.configs, t.lost()); err != nil {
		return err
	}
	// Each is seen to go, and then to come back.
	if err := configs.until(ctx, func() bool { return configs.gone == before+t.lost() }); err != nil {
		return err
	}
	return t.reached(ctx, ph, p, configs, t.lost(), f.verifyBoth)
}

// deletion starts the subject over Foos, waits until all have its finalizer, and deletes them all.
func (t *trial) deletion(ctx context.Context) error {
	f, w, err := t.fresh(ctx, "bench-deletion", t.parents())
	if err != nil {
		return err
	}
	defer w.close()
	p, err := t.start(ctx, t.sub, errand{job: finalizerJob, namespace: f.namespace})
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
		err = t.remove(running, p, f, w)
	}
	return errors.Join(err, p.stop())
}

func (t *trial) remove(ctx context.Context, p *process, f *foos, w *follower) error {
	w.wantsAll(f.all(), absent)
	ph, err := t.begin("deletion", p)
	if err != nil {
		return err
	}
	if err := f.remove(ctx, f.path, f.all()); err != nil {
		return err
	}
	return t.reached(ctx, ph, p, w, f.all(), f.verifyGone)
}
