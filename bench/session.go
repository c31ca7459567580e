// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/handwerk-dev/handwerk/bench/wire"
)

// plan says what is to be measured.
type plan struct {
	subjects  []subject
	scenarios []scenario
	// objects is the number of Foos, each of size bytes.
	objects, size, rounds int
	rest                  time.Duration

	against, profile, doc string
	// from names what is measured: versions of everything.
	from string
	// dir is where programs, data and logs go.
	dir string
	log io.Writer
}

// parents is how many Foos change in a storm, have a ConfigMap each, or a finalizer.
func (p plan) parents() int { return max(1, p.objects*2/5) }

// lost is how many of these ConfigMaps are deleted.
func (p plan) lost() int { return max(1, p.objects/25) }

// samples is how many changes there are one at a time.
func (p plan) samples() int { return max(1, min(500, p.objects/10)) }

// session is one run of the benchmark against one control plane.
type session struct {
	plan
	plane  *plane
	client *wire.Client
	// handled are the Foos of the scenario restart.
	handled *foos
}

// scenario is what a subject goes through between its start and its end.
type scenario struct {
	name string
	// once says that the first round is enough.
	once bool
	run  func(*trial, context.Context) error
}

var all = []scenario{
	{"idle", true, (*trial).idle},
	{"backlog", false, (*trial).backlog},
	{"restart", false, (*trial).restart},
	{"children", false, (*trial).children},
	{"deletion", false, (*trial).deletion},
}

// named returns the scenarios with these names.
func named(names string) (out []scenario, err error) {
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(s scenario) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no scenario %q", name)
		}
		out = append(out, all[i])
	}
	return out, nil
}

// take is what was measured in a scenario: values by row.
type take map[string]float64

// trial is one subject in one scenario of one round.
type trial struct {
	*session
	sub   subject
	round int
	out   take
}

// patience is how long a trial may take before it is given up.
const patience = 10 * time.Minute

var errSlow = fmt.Errorf("it took longer than %s", patience)

// record is what came of a trial. Failure says why there are no values, or not all.
type record struct {
	subject, scenario string
	round             int
	values            take
	failure           error
}

func (r record) String() string {
	var parts []string
	for _, key := range sorted(r.values) {
		parts = append(parts, fmt.Sprintf("%s %.4g", key, r.values[key]))
	}
	text := strings.Join(parts, ", ")
	if r.failure != nil {
		text += "; FAILED: " + r.failure.Error()
	}
	return text
}

// result is everything that was measured.
type result struct {
	plan
	begun   time.Time
	records []record
}

// measure measures everything in turn. Which subject is the first changes from round to round.
func (p plan) measure(ctx context.Context, plane *plane) (*result, error) {
	client, err := wire.New(plane.kubeconfig, "bench-loader", parallel+2)
	if err != nil {
		return nil, err
	}
	s := &session{plan: p, plane: plane, client: client}
	r := &result{plan: p, begun: time.Now()}
	if slices.ContainsFunc(p.scenarios, func(one scenario) bool { return one.name == "restart" }) {
		if err := s.prepare(ctx); err != nil {
			return nil, fmt.Errorf("preparing %d Foos: %w", p.objects, err)
		}
	}
	for round := range p.rounds {
		for _, one := range p.scenarios {
			if one.once && round > 0 {
				continue
			}
			for i := range p.subjects {
				rec := s.try(ctx, p.subjects[(i+round)%len(p.subjects)], one, round)
				r.records = append(r.records, rec)
				s.say("%d/%d %-8s %-8s %s", round+1, s.rounds, rec.subject, rec.scenario, rec)
				if ctx.Err() != nil {
					return r, context.Cause(ctx)
				}
			}
		}
	}
	return r, nil
}

func (s *session) try(ctx context.Context, sub subject, one scenario, round int) record {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errSlow)
	defer cancel()
	out := take{}
	err := one.run(&trial{s, sub, round, out}, ctx)
	return record{sub.name, one.name, round, out, err}
}

func (s *session) say(format string, args ...any) {
	fmt.Fprintf(s.log, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// failure is an error if a trial failed.
func (r *result) failure() error {
	var errs []error
	for _, rec := range r.records {
		if rec.failure != nil {
			errs = append(errs, fmt.Errorf("measuring %s in %s: %w", rec.subject, rec.scenario, rec.failure))
		}
	}
	return errors.Join(errs...)
}
