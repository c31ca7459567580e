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

// plan is what is to be measured.
type plan struct {
	subjects []subject
	wanted   map[string]bool
	// objects of size bytes are most scenarios about, parents those that have children or finalizers, lost of whose
	// ConfigMaps are deleted.
	objects, size, parents, lost, samples, rounds, many int
	rest                                                time.Duration

	controlplane, profile, compare, baseline string
	// doc is the file that the tables are put into, part the marks between which they are.
	doc, part string
	// from is what is measured: versions of everything.
	from string
	keep bool
	// dir is where programs, data and logs go.
	dir string
	log io.Writer
}

// The scenarios.
const (
	idle     = "idle"
	backlog  = "backlog"
	storm    = "storm"
	resting  = "memory"
	restart  = "restart"
	react    = "react"
	children = "children"
	heal     = "heal"
	deletion = "deletion"
	crowd    = "memory20k"
	resync   = "resync"
)

// scenarios are those of these names, with what they need.
func scenarios(names string) (map[string]bool, error) {
	needs := map[string][]string{
		idle: nil, backlog: nil, storm: {backlog}, resting: nil, restart: nil, react: {restart},
		children: nil, heal: {children}, deletion: nil, crowd: {idle}, resync: nil,
	}
	out := map[string]bool{}
	if names == "" {
		for name := range needs {
			out[name] = name != resync
		}
		return out, nil
	}
	for name := range strings.SplitSeq(names, ",") {
		more, found := needs[name]
		if !found {
			return nil, fmt.Errorf("there is no scenario %q", name)
		}
		out[name] = true
		for _, other := range more {
			out[other] = true
		}
	}
	if out[resting] && !out[backlog] && !out[restart] {
		return nil, errors.New("memory is measured after a backlog or after a restart: name one of these, too")
	}
	return out, nil
}

// session is one run of the benchmark against one control plane.
type session struct {
	plan
	plane  *plane
	client *wire.Client
	// round numbers what is asked of all Foos, so that each time it is something else.
	round int64
	// handled are the Foos that all subjects begin with where they do not begin with a backlog.
	handled *foos
}

// life is what a subject goes through in one go, with all that is measured of it.
type life struct {
	name string
	// of are the scenarios that it has; each one makes it worth while.
	of   []string
	once bool
	run  func(*session, context.Context, subject, take) error
}

var lives = []life{
	{idle, []string{idle}, true, (*session).idleLife},
	{"status", []string{backlog, storm, resting, restart, react, resync}, false, (*session).statusLife},
	{"children", []string{children, heal}, false, (*session).childrenLife},
	{"deletion", []string{deletion}, false, (*session).deletionLife},
	{crowd, []string{crowd}, true, (*session).crowdLife},
}

// take is what was measured in one life: values by row.
type take map[string]float64

// patience is how long one life may take before it is given up.
const patience = 10 * time.Minute

var errSlow = fmt.Errorf("it took longer than %s", patience)

// measure takes everything in turn.
func (p plan) measure(ctx context.Context, plane *plane) (*result, error) {
	client, err := wire.New(plane.kubeconfig, "bench-loader", parallel+2, false)
	if err != nil {
		return nil, err
	}
	s := &session{plan: p, plane: plane, client: client}
	r := &result{plan: p, begun: time.Now()}
	if (p.wanted[restart] || p.wanted[resync]) && !p.wanted[backlog] {
		if s.handled, err = s.prepare(ctx); err != nil {
			return nil, fmt.Errorf("preparing %d Foos: %w", p.objects, err)
		}
	}
	for round := range p.rounds {
		for _, l := range lives {
			if !slices.ContainsFunc(l.of, func(name string) bool { return p.wanted[name] }) || l.once && round > 0 || l.name == crowd && p.many == 0 {
				continue
			}
			for i := range p.subjects {
				sub := p.subjects[(i+round)%len(p.subjects)] // none is always the first
				rec := s.lived(ctx, sub, l)
				r.records = append(r.records, rec)
				s.say("%d/%d %-12s %-8s %s", round+1, s.rounds, sub.name, l.name, rec)
				if ctx.Err() != nil {
					return r, context.Cause(ctx)
				}
			}
		}
	}
	return r, nil
}

// lived measures one life.
func (s *session) lived(ctx context.Context, sub subject, l life) record {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errSlow)
	defer cancel()
	out := record{Subject: sub.name, Life: l.name, Values: take{}}
	if err := l.run(s, ctx, sub, out.Values); err != nil {
		out.Failure = err.Error()
	}
	return out
}

// next is a number of replicas that no Foo asks for yet.
func (s *session) next() int64 {
	s.round++
	return 1 + s.round%most
}

func (s *session) say(format string, args ...any) {
	fmt.Fprintf(s.log, time.Now().Format("15:04:05 ")+format+"\n", args...)
}
