// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

// subject is a program that is measured.
type subject struct {
	name string
	args []string
}

func minimal() subject  { return subject{name: "minimal"} }
func operator() subject { return subject{name: "operator"} }

// session is one run of the benchmark against one control plane.
type session struct {
	plan
	plane *plane
	foos  *foos
	// round numbers what is asked of all Foos, so that each time it is something else.
	round int64
}

// patience is how long one part of a measurement may take before it is given up.
const patience = 20 * time.Minute

var errSlow = fmt.Errorf("it took longer than %s", patience)

// measure takes everything in turn.
func (s *session) measure(ctx context.Context) (*result, error) {
	r := &result{plan: s.plan}
	var err error
	if r.idle, err = s.idle(ctx); err != nil {
		return nil, fmt.Errorf("measuring without objects: %w", err)
	}
	s.say("creating %d Foos", s.objects)
	if err := s.foos.create(ctx); err != nil {
		return nil, err
	}
	if r.cache, err = s.cache(ctx); err != nil {
		return nil, fmt.Errorf("measuring the cache: %w", err)
	}
	for i := range s.pairs {
		for _, sub := range []subject{minimal(), operator()} {
			l, err := s.life(ctx, sub)
			if err != nil {
				return nil, fmt.Errorf("measuring %s: %w", sub.name, err)
			}
			s.say("%d/%d %-8s %s", i+1, s.pairs, sub.name, l)
			r.add(sub, l)
		}
	}
	for _, sub := range []subject{minimal(), operator()} {
		latencies, err := s.latency(ctx, sub)
		if err != nil {
			return nil, fmt.Errorf("measuring the latency of %s: %w", sub.name, err)
		}
		r.addLatencies(sub, latencies)
	}
	s.say("samples/foo")
	if r.children, err = s.children(ctx); err != nil {
		return nil, fmt.Errorf("measuring samples/foo: %w", err)
	}
	s.say("%d Foos with five children each", s.families)
	if r.family, err = s.family(ctx); err != nil {
		return nil, fmt.Errorf("measuring children: %w", err)
	}
	return r, nil
}

// start starts a program of this module's against the control plane.
func (s *session) start(ctx context.Context, sub subject, args ...string) (*process, error) {
	all := append(append([]string(nil), sub.args...), args...)
	if s.profile != "" && sub.name == "operator" {
		name := fmt.Sprintf("%s-%d", time.Now().Format("150405.000"), s.round)
		all = append(all, "-profile", filepath.Join(s.profile, name))
	}
	return start(ctx, launch{
		path: filepath.Join(s.dir, sub.name), args: all,
		env: "KUBECONFIG=" + s.plane.kubeconfig, log: filepath.Join(s.dir, sub.name+".log"),
	})
}

// next is a number of replicas that no Foo asks for yet.
func (s *session) next() int64 {
	s.round++
	return 1 + s.round%10
}

func (s *session) say(format string, args ...any) {
	fmt.Fprintf(s.log, time.Now().Format("15:04:05 ")+format+"\n", args...)
}
