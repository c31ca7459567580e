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

// stuck is how long handlers may run after the grace period if they ignore the end of their context.
const stuck = 5 * time.Second

// controller serves one resource.
type controller interface {
	// Sources returns the sources of its objects.
	Sources() []*source.Source
	// Begin begins a term, and returns the number of workers and their function. The function returns after End, or
	// after the end of ctx, once running handlers have returned.
	Begin() (workers int, work func(ctx context.Context))
	// End stops the workers from taking keys. It has no effect outside of a term.
	End()
	// Busy returns the names of running handlers.
	Busy() []string
}

// controllers serve the resources of an engine. Their sources always run; their workers run only in terms of leadership.
// The zero value is empty. After Run the methods are safe for concurrent use.
type controllers[R controller] struct {
	// resources do not change after Run.
	resources []R
	// life is the context of the sources, nil before Run.
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

// Run runs the sources of all resources until ctx ends. It returns at once; Wait waits for their end.
func (r *controllers[R]) Run(ctx context.Context) {
	r.life = ctx
	for _, resource := range r.resources {
		for _, f := range resource.Sources() {
			r.feeding.Go(func() { f.Run(ctx) })
		}
	}
}

// Wait waits until all sources have ended.
func (r *controllers[R]) Wait() { r.feeding.Wait() }

// Settled waits until the sources of all resources run or have failed, or until ctx ends. It must be called after Run.
func (r *controllers[R]) Settled(ctx context.Context) { r.settled(ctx) }

// settled waits like Settled, and returns for each resource whether its sources have settled.
func (r *controllers[R]) settled(ctx context.Context) (out []bool) {
	for _, resource := range r.resources {
		out = append(out, r.hasSettled(ctx, resource))
	}
	return out
}

func (r *controllers[R]) hasSettled(ctx context.Context, resource R) bool {
	for _, f := range resource.Sources() {
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
	// grace is the time for handlers when the process is asked to stop.
	grace time.Duration
	// indexes are ready before the term begins, because handlers read them.
	indexes interface{ Settled(context.Context) }
	// phase is the phase of the process.
	phase *phase
	log   logr.Logger
}

// Work runs the workers once all sources have settled. If ctx ends, handlers have the grace period. If leads ends by a
// loss of leadership, they have none, also during a grace period. The error names handlers that did not end in time.
func (r *controllers[R]) Work(ctx, leads context.Context, t term) error {
	// After a loss of leadership, requests fail as cancelled ones do, which are not logged.
	work, cancel := context.WithCancel(context.WithoutCancel(leads))
	defer cancel()
	defer context.AfterFunc(leads, cancel)()
	both, stop := context.WithCancel(work)
	defer context.AfterFunc(ctx, stop)()
	defer stop()
	t.indexes.Settled(both)
	settled := r.settled(both) // so that the first reconciles find children in the cache
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

// begin starts the workers of resources whose sources have settled. Others follow when theirs have.
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

// join starts a resource in a running term, once its sources have settled.
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

// end stops workers from taking keys.
func (r *controllers[R]) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.term = nil
	for _, resource := range r.resources {
		resource.End()
	}
}

// idle returns a channel that is closed when all workers have ended.
func (r *controllers[R]) idle() <-chan struct{} {
	out := make(chan struct{})
	go func() {
		defer close(out)
		r.working.Wait()
	}()
	return out
}

// wait waits until done is closed, ctx ends or the time is over. It reports whether done was closed.
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
