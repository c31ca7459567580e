// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// familyHandlers is how many handlers each of the operators here has, all of which run for a Foo that is looked at.
const familyHandlers = 2

// larger are operators with more to do than can be compared: five children for each Foo, and samples/foo, which has a
// Deployment for each. No controllers run, so no Deployment ever has available replicas.
func (s *session) larger() ([]subject, error) {
	calm, err := s.familyConfig("calm", "24h")
	if err != nil {
		return nil, err
	}
	return []subject{
		{name: "families", title: "five children a Foo, in YAML", program: "handwerk", agent: "families/", args: configured(calm), scraped: true},
		{name: "sample", title: "samples/foo", program: "handwerk", agent: "foo/", args: configured("../samples/foo/operator.yaml"), scraped: true},
	}, nil
}

// familyConfig writes the configuration with a resync period.
func (s *session) familyConfig(name, period string) (string, error) {
	data, err := os.ReadFile(filepath.Join("yaml", "families.yaml"))
	if err != nil {
		return "", err
	}
	file := filepath.Join(s.dir, name+".yaml")
	return file, os.WriteFile(file, []byte(strings.Replace(string(data), "RESYNC", period, 1)), 0o600)
}

// measureLarger measures these alone.
func (s *session) measureLarger(ctx context.Context, r *result) error {
	var err error
	if r.subjects, err = s.larger(); err != nil {
		return err
	}
	for round := range s.rounds {
		for _, sub := range r.subjects {
			if err := r.add(s.lived(ctx, sub, life{name: "families", run: (*session).familyLife}, round)); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

// familyLife is an operator's from nothing, when every Foo changes, and when it is started again.
func (s *session) familyLife(ctx context.Context, sub subject, out take) error {
	f := newFoos(s.client, "bench-"+sub.name)
	if err := f.fresh(ctx, s.families, s.size); err != nil {
		return err
	}
	w, err := follow(ctx, s.client, f.path, availableCell, f.all())
	if err != nil {
		return err
	}
	defer w.close()
	full := sub.name == "families"
	verify, reported := f.verifyStatus, int64(1)
	if !full {
		verify, reported = func(context.Context) error { return nil }, 0
	}
	w.wantsAll(f.all(), reported)
	ph, err := s.begin(backlog, nil)
	if err != nil {
		return err
	}
	p, err := s.start(ctx, sub, errand{namespace: f.namespace, phase: backlog})
	if err != nil {
		return err
	}
	ph.at = p.started
	err = s.reached(ctx, ph, sub, p, w, f.all(), out, verify)
	if err == nil && full {
		err = s.storm(ctx, sub, p, f, w, out)
	}
	if err == nil {
		err = s.atRest(ctx, resting, p, out)
	}
	if err = errors.Join(err, p.stop()); err != nil {
		return err
	}
	if err := s.familyRestart(ctx, sub, f, out); err != nil || !full {
		return err
	}
	return s.familyResync(ctx, sub, f, out)
}

func (s *session) familyRestart(ctx context.Context, sub subject, f *foos, out take) error {
	ph, err := s.begin(restart, nil)
	if err != nil {
		return err
	}
	p, err := s.start(ctx, sub, errand{namespace: f.namespace, phase: restart})
	if err != nil {
		return err
	}
	ph.at = p.started
	at, err := p.lookedAll(ctx, familyHandlers*f.all())
	if err == nil {
		err = s.end(ctx, ph, sub, p, at, f.all(), out)
	}
	if err == nil && out[restart+"/writes"] != 0 {
		err = fmt.Errorf("it wrote %.0f times though nothing was to be done", out[restart+"/writes"])
	}
	return errors.Join(err, p.stop())
}

// familyResync notes what one look at everything takes that nothing but the clock asks for.
func (s *session) familyResync(ctx context.Context, sub subject, f *foos, out take) error {
	file, err := s.familyConfig("busy", again.String())
	if err != nil {
		return err
	}
	sub.args = configured(file)
	p, err := s.start(ctx, sub, errand{namespace: f.namespace, phase: resync})
	if err != nil {
		return err
	}
	err = s.familyPeriod(ctx, p, f, out)
	return errors.Join(err, p.stop())
}

func (s *session) familyPeriod(ctx context.Context, p *process, f *foos, out take) error {
	all := familyHandlers * f.all()
	if _, err := p.lookedAll(ctx, all); err != nil {
		return err
	}
	runs, err := p.runs(ctx)
	if err != nil {
		return err
	}
	_, took, err := s.period(ctx, p, all)
	if err != nil {
		return err
	}
	ran, err := p.runs(ctx)
	if err == nil && ran == runs {
		err = errors.New("nothing was looked at again")
	}
	if err == nil {
		out[resync+"/cpu"] = took.Seconds() * float64(all) / float64(ran-runs)
	}
	return err
}

// writeLarger writes the table of these.
func (r *result) writeLarger(out io.Writer) error {
	r.objects = r.families
	var lines strings.Builder
	r.writeHead(&lines)
	lines.WriteString("\n")
	rows := append(r.rows(), row{resync + "/cpu", fmt.Sprintf("one resync of all, within %s: processor time", again), "", seconds, false})
	for i := range rows {
		rows[i].goal = ""
	}
	r.writeRows(&lines, "", rows)
	r.writeKinds(&lines)
	r.writeNoise(&lines)
	_, err := io.WriteString(out, lines.String())
	return err
}

// configured are the arguments of the released program with a configuration.
func configured(file string) func(job, namespace string) []string {
	return func(_, namespace string) []string {
		return []string{"run", "--config", file, "--namespace", namespace, "--health-probe-bind-address", "127.0.0.1:0"}
	}
}
