// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// set holds the resources that an engine works on. Each of them is started and stopped singly, at any time; the
// others notice nothing.
type set struct {
	mu sync.Mutex
	// all are in the order in which they were started. The slice is never changed, only replaced.
	all []*resource
	// life is what feeds run in, nil before the engine runs. Term is what handlers run in, nil while this process
	// does not work.
	life, term context.Context
}

// list returns the resources that there are at this moment.
func (s *set) list() []*resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

// specs are their declarations.
func (s *set) specs() []*dsl.Resource {
	out := []*dsl.Resource{}
	for _, r := range s.list() {
		out = append(out, r.spec)
	}
	return out
}

// add begins with a resource: its feeds run as soon as the engine does, and its workers when a term lasts and the
// feeds have settled.
func (s *set) add(r *resource) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.all, func(other *resource) bool { return other.name == r.name }) {
		return fmt.Errorf("starting resource %s: it is started already", r.name)
	}
	s.all = append(slices.Clone(s.all), r) // before its feeds run, so that it misses no change of a CRD
	if s.life != nil {
		r.run(s.life)
	}
	if s.term != nil {
		go s.join(r, s.term)
	}
	return nil
}

// remove ends what add began: no key of the resource is taken any more, its handlers get the grace period, or as long
// as ctx lasts, and its feeds end. It returns when nothing of the resource runs any more.
func (s *set) remove(ctx context.Context, r *resource, grace time.Duration) {
	s.mu.Lock()
	r.leaving = true
	s.mu.Unlock()
	r.box.End()
	idle := make(chan struct{})
	go func() { r.working.Wait(); close(idle) }()
	wait(ctx, idle, grace)
	r.drop()
	<-idle
	r.quit()
	r.feeding.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(slices.Clone(s.all), func(other *resource) bool { return other == r })
}

// run has the feeds of all resources run until ctx ends.
func (s *set) run(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.life = ctx
	for _, r := range s.all {
		r.run(ctx)
	}
}

// settled waits until the feeds of all resources run or are known to be at fault, or until ctx ends, and returns the
// resources of which they do.
func (s *set) settled(ctx context.Context) (out []*resource) {
	for _, r := range s.list() {
		if settled(ctx, r.life, r.feeds()...) {
			out = append(out, r)
		}
	}
	return out
}

// begin begins a term in which handlers run until ctx ends: at once for those resources whose feeds have settled,
// for others when they have.
func (s *set) begin(ctx context.Context, settled []*resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.term = ctx
	for _, r := range s.all {
		if slices.Contains(settled, r) {
			s.beginLocked(r)
		} else {
			go s.join(r, ctx)
		}
	}
}

// join has a resource take part in a term that lasts, once its feeds have settled.
func (s *set) join(r *resource, term context.Context) {
	if !settled(term, r.life, r.feeds()...) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.term == term {
		s.beginLocked(r)
	}
}

func (s *set) beginLocked(r *resource) {
	if !r.leaving {
		r.begin(s.term)
	}
}

// end ends the term: no key is taken any more.
func (s *set) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.term = nil
	for _, r := range s.all {
		r.box.End()
	}
}
