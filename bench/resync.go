// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// again is how often everything is looked at again while a resync is measured.
const again = 40 * time.Second

// resync notes what one look at everything takes that nothing but the clock asks for.
func (s *session) resync(ctx context.Context, sub subject, f *foos, out take) error {
	ph, err := s.begin(resync, nil)
	if err != nil {
		return err
	}
	all := sub.handlers * f.all()
	p, err := s.start(ctx, sub, errand{job: statusJob, namespace: f.namespace, expected: all, traced: true, resync: again, phase: resync})
	if err != nil {
		return err
	}
	from, took, runs, err := s.period(ctx, p, all)
	if err = errors.Join(err, p.stop()); err != nil {
		return err
	}
	for _, l := range p.looks {
		if at := l.At - from.UnixNano(); at >= 0 && at < int64(again) {
			runs++
		}
	}
	if runs == 0 {
		return errors.New("nothing was looked at again")
	}
	out[resync+"/cpu"] = took.Seconds() * float64(all) / float64(runs)
	sent, err := s.plane.requested(sub.agent, ph.logged)
	if n := len(writes(sent)); err == nil && n > 0 {
		err = fmt.Errorf("it wrote %d times though nothing was to be done", n)
	}
	return err
}

// period returns the processor time of a whole period, when it began, and how many handlers ran in it, if the program reports that
// by its metrics. The period begins between two looks at everything. It rarely has just one look at each Foo, as the looks are
// spread.
func (s *session) period(ctx context.Context, p *process, all int) (from time.Time, took time.Duration, runs int, err error) {
	if _, err = p.lookedAll(ctx, all); err == nil {
		err = pause(ctx, again/3)
	}
	if err != nil {
		return from, 0, 0, err
	}
	from = time.Now()
	cpu, ran, err := p.work(ctx)
	if err == nil {
		err = pause(ctx, again)
	}
	if err != nil {
		return from, 0, 0, err
	}
	cpuThen, ranThen, err := p.work(ctx)
	return from, cpuThen - cpu, ranThen - ran, err
}

// work is the processor time that the program has taken so far, and how many handlers have run, if its metrics report that.
func (p *process) work(ctx context.Context) (cpu time.Duration, runs int, err error) {
	if p.metrics != "" {
		if runs, err = p.runs(ctx); err != nil {
			return 0, 0, err
		}
	}
	cpu, err = p.cpu()
	return cpu, runs, err
}
