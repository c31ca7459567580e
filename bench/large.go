// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// again is how often everything is looked at again while a resync is measured.
const again = 40 * time.Second

// What is measured of so many objects: the first listing, memory at rest after it, changes one at a time, and a resync.
const (
	listing  = "listing"
	standing = "standing"
	resync   = "resync"
)

// sizes reads numbers of objects, which must grow.
func sizes(text string) ([]int, error) {
	var out []int
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n <= 0 || len(out) > 0 && n <= out[len(out)-1] {
			return nil, fmt.Errorf("-large wants numbers that grow, as in 20000,100000: %q", text)
		}
		out = append(out, n)
	}
	return out, nil
}

// large measures with more and more objects, which all are handled before.
func (s *session) large(ctx context.Context, r *result) error {
	f := newFoos(s.client, "bench-large")
	if err := f.clear(ctx); err != nil {
		return err
	}
	for _, n := range s.sizes {
		s.say("growing to %d Foos", n)
		if err := s.handled(ctx, f, n); err != nil {
			return fmt.Errorf("preparing %d Foos: %w", n, err)
		}
		for round := range s.rounds {
			for _, sub := range s.subjects {
				l := life{name: fmt.Sprint(n), run: func(s *session, ctx context.Context, sub subject, out take) error {
					return s.largeLife(ctx, sub, f, out)
				}}
				if err := r.add(s.lived(ctx, sub, l, round)); err != nil {
					return err
				}
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
			}
		}
	}
	return nil
}

// handled makes more Foos and lets the minimal client write their statuses.
func (s *session) handled(ctx context.Context, f *foos, n int) error {
	before := len(f.asked)
	if err := f.grow(ctx, n, s.size); err != nil {
		return err
	}
	w, err := follow(ctx, s.client, f.path, availableCell, n)
	if err != nil {
		return err
	}
	defer w.close()
	for i := range n - before {
		w.wants(nameOf(before+i), 1)
	}
	p, err := s.start(ctx, subjects[0], errand{job: statusJob, namespace: f.namespace, phase: "prepare"})
	if err != nil {
		return err
	}
	running, done := p.while(ctx)
	defer done()
	_, err = w.reach(running)
	return errors.Join(err, p.stop())
}

// largeLife is that of a subject over objects that need nothing.
func (s *session) largeLife(ctx context.Context, sub subject, f *foos, out take) error {
	w, err := follow(ctx, s.client, f.path, availableCell, f.all())
	if err != nil {
		return err
	}
	defer w.close()
	p, err := s.looksAtAll(ctx, sub, errand{job: statusJob, namespace: f.namespace, expected: f.all(), phase: listing}, out)
	if p == nil {
		return err
	}
	if err == nil {
		err = s.atRest(ctx, standing, p, out)
	}
	if err == nil {
		_, err = s.oneByOne(ctx, sub, p, f, w, out)
	}
	if err = errors.Join(err, p.stop()); err != nil || sub.name != "go" {
		return err
	}
	return s.resync(ctx, sub, f, out)
}

// resync notes what one look at everything takes that nothing but the clock asks for.
func (s *session) resync(ctx context.Context, sub subject, f *foos, out take) error {
	slow := sub
	slow.args = ours("-resync", again.String())
	ph, err := s.begin(resync, nil)
	if err != nil {
		return err
	}
	p, err := s.start(ctx, slow, errand{job: statusJob, namespace: f.namespace, expected: f.all(), traced: true, phase: resync})
	if err != nil {
		return err
	}
	from, took, err := s.period(ctx, p, f.all())
	if err = errors.Join(err, p.stop()); err != nil {
		return err
	}
	looks := 0
	for _, l := range p.looks {
		if at := l.At - from.UnixNano(); at >= 0 && at < int64(again) {
			looks++
		}
	}
	out[resync+"/looks"] = float64(looks) / float64(f.all())
	out[resync+"/cpu"] = took.Seconds() / out[resync+"/looks"]
	sent, err := s.plane.requested(sub.agent, ph.logged)
	if n := len(writes(sent)); err == nil && n > 0 {
		err = fmt.Errorf("it wrote %d times though nothing was to be done", n)
	}
	return err
}

// period returns the processor time of a whole period, and when it began: between two looks at everything. No period is
// just one look at each, as the looks are spread.
func (s *session) period(ctx context.Context, p *process, objects int) (from time.Time, took time.Duration, err error) {
	if _, err = p.lookedAll(ctx, objects); err != nil {
		return from, 0, err
	}
	if err = pause(ctx, again/3); err != nil {
		return from, 0, err
	}
	from = time.Now()
	before, err := p.cpu()
	if err != nil {
		return from, 0, err
	}
	if err = pause(ctx, again); err != nil {
		return from, 0, err
	}
	after, err := p.cpu()
	return from, after - before, err
}

// largeRows are what is told of each number of objects.
func (p plan) largeRows() []row {
	return []row{
		{listing + "/wall", "first listing: until all were looked at", "", seconds, true},
		{listing + "/cpu", "… processor time", "", seconds, true},
		{standing + "/rss", "memory (RSS) at rest", "", megabytes, false},
		{standing + "/anon", "… its own", "", megabytes, false},
		{standing + "/peak", "… at most", "", megabytes, false},
		{react + "/cpu", "one change at a time: processor time a change", "", milliseconds, true},
		{react + "/answer50", "… from a change to its status patch at the server, median", "", milliseconds, true},
		{react + "/answer99", "… 99th percentile", "", milliseconds, true},
		{resync + "/cpu", "one resync of all: processor time", "", seconds, false},
	}
}

// at is the part of the result that is about so many objects.
func (r *result) at(n int) *result {
	out := *r
	out.records = nil
	for _, rec := range r.records {
		if rec.Life == fmt.Sprint(n) {
			out.records = append(out.records, rec)
		}
	}
	return &out
}

// writeLarge writes a table for each number of objects.
func (r *result) writeLarge(out io.Writer) error {
	var lines strings.Builder
	r.writeHead(&lines)
	for _, n := range r.sizes {
		fmt.Fprintf(&lines, "\n")
		r.at(n).writeRows(&lines, fmt.Sprintf("%d × %.1f KB", n, float64(r.size)/1e3), r.largeRows())
	}
	r.writeNoise(&lines)
	lines.WriteString("\n")
	for _, c := range curves {
		fmt.Fprintf(&lines, "![%s](%s)\n", c.title, c.file)
	}
	_, err := io.WriteString(out, lines.String())
	return err
}
