// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package feed brings in the objects of one resource. A feed finds the resource that the API server serves under a name, checks
// the rights that the engine needs for it, and keeps one informer for each namespace in scope. It recovers without a restart
// when a CRD is created, a right is granted or another version is served. A fault stays within its feed.
//
// A [Factory] makes the feeds of an operator, and watches namespaces and CRDs for all of them where one needs that. A [Scope]
// is the set of namespaces that the operator works in. A [Health] keeps the state of a feed, and logs once when it becomes
// degraded and once when it is well again.
package feed

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/backoff"
	"github.com/handwerk-dev/handwerk/engine/catalog"
	"github.com/handwerk-dev/handwerk/engine/transport"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// Cluster is what the feeds of an operator share.
type Cluster struct {
	// Catalog says what is served and allowed, Metadata reads CRDs, Watches has the informers, and Scope
	// the namespaces.
	Catalog  *catalog.Catalog
	Metadata metadata.Interface
	Watches  *watch.Set
	Scope    *Scope
	// CRDs is asked to watch CRDs when a resource is not served. It must be quick.
	CRDs interface{ WantCRDs() }
	// Outages knows whether the log has that the API server is away.
	Outages *transport.Outages
}

// Settings configure one feed. All are required unless marked optional.
type Settings struct {
	// Name is the resource as it was declared, or as it is called for people where Kind is set.
	Name dsl.ResourceName
	// Kind is what was declared in the place of a name. Optional.
	Kind schema.GroupVersionKind
	// Source is what the informers have in common. The feed fills in GVR, Kind and Namespace.
	Source watch.Source
	// Handler gets the events.
	Handler Handler
	// Steps is called with each step of the feed. Optional.
	Steps Steps
	// Log gets when the feed begins to be degraded and when it is well again. Optional.
	Log logr.Logger

	// Patches is true if the engine itself writes to the objects, ObservedGeneration if it writes
	// status.observedGeneration (see [Feed.KeepsGeneration]), and Gets if it reads single objects, as to confirm
	// deletions. Requests of handlers do not count. Default to false.
	Patches, ObservedGeneration, Gets bool
}

// Handler takes the events of a feed, those of one object in order. It must be quick and must not wait for the feed.
type Handler interface {
	watch.Handler
	// Grant is called when something that kept objects out is over, and they are listed.
	Grant()
}

// Steps follows the steps of a feed. The feed's own goroutine calls the methods.
type Steps interface {
	// Listed is called with each step once the handler has got all objects of the first listings. The feed runs if well is
	// true. Listed reports whether to call it again soon.
	Listed(ctx context.Context, well bool) (again bool)
	// Absent is called with each step while the resource has no CRD.
	Absent(ctx context.Context)
}

// Feed brings the objects of one resource in. [Feed.Run] does the work; the other methods may be called at
// any time by any number of goroutines.
type Feed struct {
	settings Settings
	cluster  Cluster
	wake     chan struct{}
	health   *Health

	// Only Run's goroutine uses these. asked is the time when the feed last looked for the reason of a 404, and lost
	// is the result. lacking has the missing rights by namespace. bereft is true when the CRD was deleted and the
	// resource was not listed since; the server may serve it for a while.
	asked   time.Time
	lost    bool
	lacking map[string]lack
	bereft  bool

	mu sync.Mutex
	facts
	informers map[string]*informer
	// next is the version that the feed switches to, or nil. Only Run's goroutine sets it.
	next *successor
	// crdDeleted is true from a deletion of the CRD until the next step.
	crdDeleted bool
	// prompted is true after an event for which the feed may wait.
	prompted bool
	// suspects are namespaces where a request was refused.
	suspects map[string]suspicion
}

// facts are the properties of the resource.
type facts struct {
	// served is the resource that the API server serves under the name. Known is true while it does, as far as the feed
	// knows.
	served catalog.Resource
	known  bool
	// observes: objects have status.observedGeneration.
	observes bool
	// hasCRD: the resource has a CRD. crdKnown: whether it has is known, or cannot be.
	hasCRD, crdKnown bool
	// absent: there is no CRD, and so there are no objects.
	absent bool
}

// now returns the facts of the moment.
func (f *Feed) now() facts {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.facts
}

// New returns a feed that is not running yet.
func New(c Cluster, s Settings) *Feed {
	return &Feed{
		settings: s, cluster: c, wake: make(chan struct{}, 1), health: NewHealth(s.Log),
		lacking: map[string]lack{}, informers: map[string]*informer{}, suspects: map[string]suspicion{},
	}
}

// Run keeps the feed going until ctx ends, and closes its informers then.
func (f *Feed) Run(ctx context.Context) {
	p := patience{}
	for {
		again := f.step(ctx)
		select {
		case <-ctx.Done():
			f.abandon(schema.GroupVersionResource{})
			for _, ns := range f.opened() {
				f.close(ns)
			}
			return
		case <-f.wake:
		case <-p.wait(again, f.Status().Phase == Running, f.once(&f.prompted)):
		}
	}
}

// Nudge makes the feed look again soon. It never blocks.
func (f *Feed) Nudge() { signal(f.wake) }

// signal sends to a channel unless that is full.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// once reports whether a flag is set, and takes it back.
func (f *Feed) once(flag *bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := *flag
	*flag = false
	return was
}

// step brings the feed one step nearer to running and reports whether to look again by itself.
func (f *Feed) step(ctx context.Context) (again bool) {
	if f.once(&f.crdDeleted) {
		f.end()
		f.bereft = true
	}
	if !f.resolve(ctx) {
		return true
	}
	f.findCRD(ctx)
	if !f.unfound() {
		f.abandon(f.Resource().GVR)
	} else if f.inquire(ctx) {
		return true
	}
	f.catchUp(ctx)
	namespaces, known := f.namespaces()
	if !known {
		return f.awaitNamespaces()
	}
	missing, err := f.access(ctx, namespaces)
	if err == nil {
		err = f.open(ctx, namespaces, missing)
	}
	if err != nil {
		f.fail(err)
		return true
	}
	again = f.judge(ctx, missing)
	f.bereft = f.bereft && f.Status().Phase != Running
	return again
}

// namespaces are those of the scope, [""] meaning all at once, and false while they are not known.
func (f *Feed) namespaces() (names []string, known bool) {
	return f.cluster.Scope.Names(f.Resource().Namespaced)
}

// awaitNamespaces sets the state of a feed without a list of namespaces, and reports whether to look again.
func (f *Feed) awaitNamespaces() (again bool) {
	if fault := f.cluster.Scope.Fault(); fault != "" {
		f.set(Faulty, fault)
		return true
	}
	f.set(Starting, "waiting for the list of namespaces")
	return false
}

// open makes the informers those of the namespaces.
func (f *Feed) open(ctx context.Context, namespaces []string, missing missingVerbs) error {
	for _, ns := range f.opened() {
		if !slices.Contains(namespaces, ns) {
			f.close(ns).ledger.closeAsDeleted()
		}
	}
	for _, ns := range namespaces {
		if f.Informer(ns) != nil || !missing.reads(ns) {
			continue
		}
		f.mu.Lock() // the pass that the first event starts must find the informer
		opened, err := f.start(ctx, f.served, ns, false)
		if err == nil {
			f.informers[ns] = opened
		}
		f.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

const (
	// lookAgain and lookAgainMost bound the back-off of a feed that is not well: it doubles from the first to the second.
	lookAgain     = time.Second
	lookAgainMost = 10 * time.Second
	// wellAfter is how long a feed must run before its back-off starts over.
	wellAfter = 30 * time.Second
)

// patience is the back-off of a feed that is not well. The wait doubles with each step. It starts over only when the feed ran for a
// while, or after an event for which the feed may wait. The zero value is ready to use.
type patience struct {
	last time.Duration
	// due is the time of the next step, zero for none.
	due time.Time
	// running is the time since which the feed runs, zero when it does not.
	running time.Time
}

// wait returns a channel for the next step, nil if none is due. Prompted resets the back-off.
func (p *patience) wait(again, running, prompted bool) <-chan time.Time {
	now := time.Now()
	switch {
	case running && p.running.IsZero():
		p.running = now
	case !running:
		if prompted || !p.running.IsZero() && now.Sub(p.running) >= wellAfter {
			p.last, p.due = 0, time.Time{}
		}
		p.running = time.Time{}
	}
	switch {
	case !again:
		p.due = time.Time{}
		return nil
	case !now.Before(p.due):
		last, in := backoff.Next(p.last, lookAgain, lookAgainMost)
		p.last, p.due = last, now.Add(in)
	}
	return time.After(p.due.Sub(now))
}
