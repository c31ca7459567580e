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
	comparable
	// Name is unique among the controllers.
	Name() string
	// Feeds are what brings its objects in.
	Feeds() []*feed.Feed
	// Begin begins a term and returns how many workers there are to be. Each calls work, which returns after End, or
	// after ctx has ended, as soon as the handlers do that run.
	Begin() (workers int, work func(ctx context.Context))
	// End has the workers take no key any more. It does no harm outside of a term.
	End()
	// Busy names the handlers that run at this moment.
	Busy() []string
}

// controllers are the resources that an engine works on. Each one starts and stops by itself, at any time, without an effect on
// the others. Their feeds always run, their workers only in the terms in which the process leads. The zero value has none. The
// methods may be called by any number of goroutines.
type controllers[R controller] struct {
	mu sync.Mutex
	// entries are in the order in which the resources were started. The slice is never changed, only replaced.
	entries []*entry[R]
	// life is what feeds run in, nil before Run. term is what handlers run in, nil outside of one.
	life, term context.Context
}

// entry is one resource. The lock of the controllers guards what is set after it was made.
type entry[R controller] struct {
	resource R
	// life is what the feeds run in until quit ends it, and drop ends what the handlers run in.
	life       context.Context
	quit, drop context.CancelFunc
	// leaving: the resource is being stopped. Neither feeds nor workers are begun any more.
	leaving          bool
	feeding, working sync.WaitGroup
}

func (r *controllers[R]) list() []*entry[R] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.entries
}

// All yields the resources that there are, in the order in which they were started.
func (r *controllers[R]) All(yield func(R) bool) {
	for _, e := range r.list() {
		if !yield(e.resource) {
			return
		}
	}
}

// Start begins with a resource: its feeds run as soon as those of others do, and its workers when a term lasts and the
// feeds have settled. The error says that one of its name was started already.
func (r *controllers[R]) Start(resource R) error {
	e := &entry[R]{resource: resource, quit: func() {}, drop: func() {}}
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.entries, func(other *entry[R]) bool { return other.resource.Name() == resource.Name() }) {
		return fmt.Errorf("starting resource %s: it is started already", resource.Name())
	}
	r.entries = append(slices.Clone(r.entries), e) // before its feeds run, so that it misses no change of a CRD
	if r.life != nil {
		e.run(r.life)
	}
	if r.term != nil {
		go r.join(r.term, e)
	}
	return nil
}

// Stop ends what Start began: no key of the resource is taken any more, its handlers get the grace period, or as long
// as ctx lasts, and its feeds end. It returns when nothing of the resource runs any more.
func (r *controllers[R]) Stop(ctx context.Context, resource R, grace time.Duration) {
	all := r.list()
	at := slices.IndexFunc(all, func(e *entry[R]) bool { return e.resource == resource })
	if at < 0 {
		return
	}
	e := all[at]
	r.mu.Lock()
	e.leaving = true
	quit, drop := e.quit, e.drop
	r.mu.Unlock()
	resource.End()
	done := idle(e)
	wait(ctx, done, grace)
	drop()
	<-done
	quit()
	e.feeding.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = slices.DeleteFunc(slices.Clone(r.entries), func(other *entry[R]) bool { return other == e })
}

// Run has the feeds of all resources run until ctx ends, and returns at once. Wait waits for their end.
func (r *controllers[R]) Run(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.life = ctx
	for _, e := range r.entries {
		e.run(ctx)
	}
}

// Wait waits until no feed runs any more.
func (r *controllers[R]) Wait() {
	for _, e := range r.list() {
		e.feeding.Wait()
	}
}

func (e *entry[R]) run(ctx context.Context) {
	e.life, e.quit = context.WithCancel(ctx)
	if e.leaving { // there is nothing to be waited for
		e.quit()
		return
	}
	for _, f := range e.resource.Feeds() {
		e.feeding.Go(func() { f.Run(e.life) })
	}
}

// Settled waits until the feeds of all resources run or are known to be at fault, or until ctx ends. It must not be
// called before Run was.
func (r *controllers[R]) Settled(ctx context.Context) { r.settled(ctx) }

// settled returns the resources whose feeds have settled, after Settled.
func (r *controllers[R]) settled(ctx context.Context) (out []*entry[R]) {
	for _, e := range r.list() {
		if e.settled(ctx) {
			out = append(out, e)
		}
	}
	return out
}

func (e *entry[R]) settled(ctx context.Context) bool {
	for _, f := range e.resource.Feeds() {
		select {
		case <-f.Settled():
		case <-ctx.Done():
			return false
		case <-e.life.Done():
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
	done := idle(r.list()...)
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
func (r *controllers[R]) begin(ctx context.Context, settled []*entry[R]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.term = ctx
	for _, e := range r.entries {
		if slices.Contains(settled, e) {
			e.begin(ctx)
		} else {
			go r.join(ctx, e)
		}
	}
}

// join has a resource take part in a term that lasts, once its feeds have settled.
func (r *controllers[R]) join(term context.Context, e *entry[R]) {
	if !e.settled(term) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.term == term {
		e.begin(term)
	}
}

func (e *entry[R]) begin(ctx context.Context) {
	if e.leaving {
		return
	}
	ctx, e.drop = context.WithCancel(ctx)
	workers, work := e.resource.Begin()
	for range workers {
		e.working.Go(func() { work(ctx) })
	}
}

// end has no key taken any more.
func (r *controllers[R]) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.term = nil
	for _, e := range r.entries {
		e.resource.End()
	}
}

// idle is closed when no worker of the entries is left.
func idle[R controller](entries ...*entry[R]) <-chan struct{} {
	out := make(chan struct{})
	go func() {
		defer close(out)
		for _, e := range entries {
			e.working.Wait()
		}
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
