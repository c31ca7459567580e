// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/catalog"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

const (
	// lookAgain and lookAgainMost bound the wait before a feed that is not well looks again when
	// nothing tells it to: it doubles from the first to the second.
	lookAgain     = time.Second
	lookAgainMost = 10 * time.Second
	// wellAfter is how long a feed must run for the waits to begin anew.
	wellAfter = 30 * time.Second
)

// phase says how a feed is.
type phase string

const (
	phaseStarting  phase = "starting"
	phaseMissing   phase = "not served"
	phaseForbidden phase = "forbidden"
	phaseFaulty    phase = "faulty"
	phaseRunning   phase = "running"
)

// feed brings one resource's objects in: it finds what the API server serves under the name, asks
// for the rights, keeps one informer for each namespace in scope, and heals. One goroutine runs
// it; a fault of one feed is no other's.
type feed struct {
	// name is the resource as it was declared, or as it is called for people when a kind was.
	name dsl.ResourceName
	// kind, when set, is what was declared.
	kind schema.GroupVersionKind
	// source is what the informers have in common.
	source watch.Source
	// writes are the verbs with which the engine itself writes. What handlers write besides, only
	// they know.
	writes []string
	// proves: objects are read when nobody saw them go.
	proves bool
	// generation: it matters whether objects have status.observedGeneration.
	generation bool
	// on gets the events, quickly.
	on       func(watch.Event)
	catalog  *catalog.Catalog
	watches  *watch.Set
	scope    *scope
	log      logr.Logger
	metadata metadata.Interface
	// ran is called when the informers have told of all that there is; nil when nobody asks.
	ran func()
	// also is called with each step of a feed that runs, and reports whether to look again; nil when
	// there is nothing more to do.
	also func(context.Context) (again bool)
	// away reports whether it is said that the API server is away, or came back a moment ago.
	away func() bool
	// covers reports whether a refusal is due to that.
	covers func(error) bool
	// missing is called when the name is not served, so that somebody may watch for its CRD.
	missing func()

	wake chan struct{}
	// inquired is when the feed last asked what a 404 means, and elapsed whether the answer was that it
	// means something; only run's goroutine uses them.
	inquired time.Time
	elapsed  bool

	mu       sync.Mutex
	served   catalog.Resource
	known    bool
	observes bool
	handles  map[string]*watch.Handle
	// ledgers are those of the handles.
	ledgers map[string]*ledger
	// next is what the feed is about to go over to, nil when it is not. Only run's goroutine sets it.
	next *successor
	// backed: the resource has a CRD. certified: whether it has is known, or cannot be.
	backed, certified bool
	// doomed: the CRD was seen to go, and that is not dealt with yet.
	doomed bool
	// absent: there is no CRD, and so there are no objects.
	absent bool
	// hasten: something has come for which the feed may wait.
	hasten  bool
	phase   phase
	message string
	// spell is the time for which it is degraded, nil when it is not.
	spell   *spell
	settled chan struct{} // closed when the feed runs or its first fault is known
	// hindrances are what is wrong in single namespaces; warning is what is said of it while others
	// are well.
	hindrances hindrances
	warning    string
	warned     bool // it is in the log
	// suspects are namespaces where a request was refused; false for a while after that was looked
	// into.
	suspects map[string]bool
	// denials are known to be missing; only run's goroutine uses them.
	denials map[string]*denial
	// granted, when set, is called when a hindrance is gone; owed are the namespaces of which it is to
	// be, after their listing.
	granted func()
	owed    map[string]bool
}

// run keeps the feed going until ctx ends.
func (f *feed) run(ctx context.Context) {
	p := patience{}
	for {
		again := f.step(ctx)
		select {
		case <-ctx.Done():
			f.closeAll()
			return
		case <-f.wake:
		case <-p.wait(again, f.health().phase == phaseRunning, f.hastened()):
		}
	}
}

// hastened reports once that something has come for which the feed may have waited.
func (f *feed) hastened() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.hasten
	f.hasten = false
	return was
}

// nudge makes the feed look again soon. It never blocks.
func (f *feed) nudge() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// step brings the feed one step nearer to running and reports whether to look again by itself.
func (f *feed) step(ctx context.Context) (again bool) {
	if f.doom() {
		f.end()
	}
	if !f.resolve(ctx) {
		return true
	}
	f.certify(ctx)
	if !f.lost() {
		f.abandon()
	} else if f.inquire(ctx) {
		return true
	}
	f.catchUp(ctx)
	namespaces, ready := f.scope.names(f.resource().Namespaced)
	if !ready {
		if fault := f.scope.fault(); fault != "" {
			f.become(hindrance{phase: phaseFaulty, text: fault})
			return true
		}
		f.become(hindrance{phase: phaseStarting, text: "waiting for the list of namespaces"})
		return false
	}
	missing, err := f.access(ctx, namespaces)
	if err != nil {
		f.fail(err)
		return true
	}
	if err := f.open(ctx, namespaces, missing); err != nil {
		f.fail(err)
		return true
	}
	return f.judge(ctx, missing)
}

// open makes the informers those of the namespaces.
func (f *feed) open(ctx context.Context, namespaces []string, missing denied) error {
	for _, ns := range f.opened() {
		if !slices.Contains(namespaces, ns) {
			f.close(ns).bury()
		}
	}
	for _, ns := range namespaces {
		if f.handle(ns) != nil || !missing.reads(ns) {
			continue
		}
		src := f.source
		src.GVR, src.Kind, src.Namespace = f.resource().GVR, f.resource().Kind, ns
		f.mu.Lock() // the pass that the first event starts must find the handle
		l := newLedger(f.on, false)
		h, err := f.watches.Open(ctx, src, l.take)
		if err == nil {
			f.handles[ns], f.ledgers[ns] = h, l
		}
		f.mu.Unlock()
		if err != nil {
			return fmt.Errorf("watching %s: %w", f.name, err)
		}
	}
	return nil
}

// judge looks at the informers and says how the feed is. It is degraded as a whole when nothing works;
// what is wrong in some namespaces, which people without rights may have made, is a warning.
func (f *feed) judge(ctx context.Context, missing denied) (again bool) {
	seen := f.survey(ctx, missing)
	if ctx.Err() != nil {
		return false
	}
	bad := seen.bad
	switch now := f.standing(seen, missing); now.phase {
	case phaseStarting:
		f.become(now)
	case phaseRunning:
		f.become(now)
		f.warn(bad.warning(missing), bad.silent())
	default:
		f.unwarn()
		f.become(now)
	}
	f.hinder(seen)
	if f.ran != nil && f.told(ctx) {
		f.ran()
	}
	more := f.also != nil && f.health().phase == phaseRunning && f.also(ctx)
	return more || len(bad) > 0
}

// told reports whether the informers have told of all that there is. It waits for their callbacks.
func (f *feed) told(ctx context.Context) bool {
	all := f.all()
	return len(all) > 0 && !slices.ContainsFunc(all, func(h *watch.Handle) bool {
		return !h.State().Synced || h.WaitSynced(ctx) != nil
	})
}

// closeAll closes every informer.
func (f *feed) closeAll() {
	f.dropNext()
	for _, ns := range f.opened() {
		f.close(ns)
	}
}

// close closes the namespace's informer, and that of a successor, and returns its ledger.
func (f *feed) close(namespace string) *ledger {
	f.mu.Lock()
	h, l := f.handles[namespace], f.ledgers[namespace]
	delete(f.handles, namespace)
	delete(f.ledgers, namespace)
	var next *watch.Handle
	if f.next != nil {
		next = f.next.handles[namespace]
		delete(f.next.handles, namespace)
		delete(f.next.ledgers, namespace)
	}
	f.mu.Unlock()
	h.Close()
	if next != nil {
		next.Close()
	}
	return l
}

func (f *feed) isKnown() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known
}

func (f *feed) resource() catalog.Resource {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.served
}

// keepsGeneration reports whether what was handled is kept in status.observedGeneration.
func (f *feed) keepsGeneration() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.observes && f.served.Status
}

func (f *feed) opened() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for ns := range f.handles {
		out = append(out, ns)
	}
	slices.Sort(out)
	return out
}

// handle returns the informer that has the namespace's objects, nil when there is none.
func (f *feed) handle(namespace string) *watch.Handle {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h, all := f.handles[""]; all {
		return h
	}
	return f.handles[namespace]
}

// all returns the informers.
func (f *feed) all() []*watch.Handle {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]*watch.Handle, 0, len(f.handles))
	for _, h := range f.handles {
		out = append(out, h)
	}
	return out
}

// object returns what the cache has under the key.
func (f *feed) object(key cache.ObjectName) (*watch.Object, bool) {
	h := f.handle(key.Namespace)
	if h == nil {
		return nil, false
	}
	return h.Object(key)
}

// ownedBy returns the objects that the owner controls, or that have its label.
func (f *feed) ownedBy(owner string) []*watch.Object {
	var out []*watch.Object
	for _, h := range f.all() {
		out = append(out, h.OwnedBy(owner)...)
	}
	return out
}

// chooses reports whether objects may leave what the feed brings in although they live.
func (f *feed) chooses() bool {
	return f.source.LabelSelector != "" || f.source.FieldSelector != "" || f.scope.live
}
