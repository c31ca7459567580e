// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/handwerk-dev/handwerk/engine/cache/source"
)

// stuck is how long handlers have, after the grace period, that do not heed the end of their context.
const stuck = 5 * time.Second

// controller is one resource at work.
type controller interface {
	// Feeds are what brings its objects in.
	Feeds() []*source.Source
	// Begin begins a term and returns how many workers there are to be. Each calls work, which returns after End, or
	// after ctx has ended, as soon as the handlers do that run.
	Begin() (workers int, work func(ctx context.Context))
	// End has the workers take no key any more. It does no harm outside of a term.
	End()
	// Busy names the handlers that run at this moment.
	Busy() []string
}

// controllers are the resources that an engine works on. Their feeds always run, their workers only in the terms in
// which the process leads. The zero value has none. After Run the methods may be called by any number of goroutines.
type controllers[R controller] struct {
	// resources do not change after Run.
	resources []R
	// life is the context of feeds, nil before Run.
	life             context.Context
	feeding, working sync.WaitGroup

	mu sync.Mutex
	// term is the context of handlers, nil outside of a term.
	term context.Context
}

// All yields the resources in the order in which they were added.
func (r *controllers[R]) All(yield func(R) bool) { slices.Values(r.resources)(yield) }

// Add adds a resource. It must not be called after Run.
func (r *controllers[R]) Add(resource R) { r.resources = append(r.resources, resource) }

// Run has the feeds of all resources run until ctx ends, and returns at once. Wait waits for their end.
func (r *controllers[R]) Run(ctx context.Context) {
	r.life = ctx
	for _, resource := range r.resources {
		for _, f := range resource.Feeds() {
			r.feeding.Go(func() { f.Run(ctx) })
		}
	}
}

// Wait waits until all feeds have ended.
func (r *controllers[R]) Wait() { r.feeding.Wait() }

// Settled waits until the feeds of all resources run or are known to be at fault, or until ctx ends. It must not be
// called before Run was.
func (r *controllers[R]) Settled(ctx context.Context) { r.settled(ctx) }

// settled waits like Settled, and returns for each resource whether its feeds have settled.
func (r *controllers[R]) settled(ctx context.Context) (out []bool) {
	for _, resource := range r.resources {
		out = append(out, r.hasSettled(ctx, resource))
	}
	return out
}

func (r *controllers[R]) hasSettled(ctx context.Context, resource R) bool {
	for _, f := range resource.Feeds() {
		select {
		case <-f.Settled():
		case <-ctx.Done():
			return false
		case <-r.life.Done():
			return false
		}
	}
	return true
}

// term configures a term.
type term struct {
	// grace is how long handlers have when the process is asked to stop.
	grace time.Duration
	// indexes are what handlers read; the term begins once they can.
	indexes interface{ Settled(context.Context) }
	// phase is that of the process.
	phase *phase
	log   logr.Logger
}

// Work works once all feeds have settled, until ctx ends, with the grace period for handlers, or until leads ends by the
// loss of leadership, without; also when that happens in the grace period. The error names handlers that did not
// end in time.
func (r *controllers[R]) Work(ctx, leads context.Context, t term) error {
	// Requests that are cut off by a loss fail as cancelled ones do, which are not logged.
	work, cancel := context.WithCancel(context.WithoutCancel(leads))
	defer cancel()
	defer context.AfterFunc(leads, cancel)()
	both, stop := context.WithCancel(work)
	defer context.AfterFunc(ctx, stop)()
	defer stop()
	t.indexes.Settled(both)
	settled := r.settled(both) // so that the first passes find children in the cache
	if both.Err() != nil {
		return nil
	}
	r.begin(work, settled)
	t.phase.works()
	<-both.Done()
	t.phase.ends(ctx)
	r.end()
	done := r.idle()
	if leads.Err() == nil {
		t.log.Info("operator stops; handlers get the grace period", "grace", t.grace.String())
		wait(leads, done, t.grace)
	}
	cancel()
	if !wait(context.WithoutCancel(ctx), done, stuck) && ctx.Err() != nil {
		var busy []string
		for resource := range r.All {
			busy = append(busy, resource.Busy()...)
		}
		return fmt.Errorf("stopping operator: handlers are still running: %s", strings.Join(busy, ", "))
	}
	<-done // another term must not begin while handlers of this one run
	return nil
}

// begin has the workers work until ctx ends: at once for those resources whose feeds have settled, for others when they
// have.
func (r *controllers[R]) begin(ctx context.Context, settled []bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.term = ctx
	for i, resource := range r.resources {
		if settled[i] {
			r.start(ctx, resource)
		} else {
			go r.join(ctx, resource)
		}
	}
}

// join has a resource take part in a term that lasts, once its feeds have settled.
func (r *controllers[R]) join(term context.Context, resource R) {
	if !r.hasSettled(term, resource) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.term == term {
		r.start(term, resource)
	}
}

// start starts the workers of a resource.
func (r *controllers[R]) start(ctx context.Context, resource R) {
	workers, work := resource.Begin()
	for range workers {
		r.working.Go(func() { work(ctx) })
	}
}

// end has no key taken any more.
func (r *controllers[R]) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.term = nil
	for _, resource := range r.resources {
		resource.End()
	}
}

// idle returns a channel that is closed when no worker is left.
func (r *controllers[R]) idle() <-chan struct{} {
	out := make(chan struct{})
	go func() {
		defer close(out)
		r.working.Wait()
	}()
	return out
}

// wait waits until done is closed, ctx has ended or the time is over, and reports whether it was the first.
func wait(ctx context.Context, done <-chan struct{}, most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	case <-timer.C:
		return false
	}
}
