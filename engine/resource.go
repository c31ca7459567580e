// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/busy"
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/queue"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// resource is one watched resource at work: its feeds, its queue and what it remembers of its
// objects. Resources share nothing but informers, so a slow one starves nobody.
type resource struct {
	engine   *Engine
	spec     *dsl.Resource
	name     string
	rules    rules
	log      logr.Logger
	own      *feed.Feed
	children []*feed.Feed
	// relations are the resource's relations with their feeds.
	relations []*relation
	busy      *busy.Passes
	offers    offers
	// schemas counts changes of the resource's CRD, as far as CRDs are watched.
	schemas atomic.Int64

	mu      sync.Mutex
	entries map[cache.ObjectName]*entry
	// queue is nil while this process does not lead.
	queue *queue.Queue[cache.ObjectName]
	// waiting are parked keys by the UIDs of the objects whose events wake them.
	waiting map[types.UID][]cache.ObjectName
	// lacking are the keys for which a right was missing, with the handlers that lacked it.
	lacking map[cache.ObjectName][]string
	// resting counts objects that the breaker holds.
	resting map[cache.ObjectName]time.Time
	// unclear are objects that nobody saw go, with why it cannot be told whether they are gone.
	unclear map[types.UID]string
}

// newResource prepares a resource; nothing runs yet.
func newResource(e *Engine, spec *dsl.Resource) *resource {
	r := &resource{
		engine: e, spec: spec, name: spec.Name.String(), rules: newRules(e.op, spec),
		log:     e.log.WithValues("resource", spec.Name.String()),
		entries: map[cache.ObjectName]*entry{},
		waiting: map[types.UID][]cache.ObjectName{},
		lacking: map[cache.ObjectName][]string{},
		resting: map[cache.ObjectName]time.Time{},
		unclear: map[types.UID]string{},
	}
	r.own = e.newFeed(feed.Settings{
		Name: spec.Name, Log: r.log, On: r.seen, Granted: r.granted,
		Source: watch.Source{
			Profile: spec.Cache, LabelSelector: spec.LabelSelector, FieldSelector: spec.FieldSelector, Keep: watch.Keep(spec.Keep),
		},
		Patches: r.rules.finalizes || r.rules.stores && !spec.ObservedGeneration, ObservedGeneration: spec.ObservedGeneration,
		Gets: r.rules.deletes,
	})
	for _, owned := range spec.Owned() {
		r.children = append(r.children, r.childFeedOf(owned))
	}
	r.relate()
	r.busy = busy.New(r.log)
	return r
}

// feeds are the resource's feeds, its own first.
func (r *resource) feeds() []*feed.Feed {
	out := append([]*feed.Feed{r.own}, r.children...)
	for _, one := range r.relations {
		out = append(out, one.feed)
	}
	return out
}

// begin starts a term of leadership: every object that is there is looked at. What an earlier
// term remembered is void, for another process may have worked since.
func (r *resource) begin() *queue.Queue[cache.ObjectName] {
	r.mu.Lock()
	r.entries = map[cache.ObjectName]*entry{}
	r.waiting = map[types.UID][]cache.ObjectName{}
	r.lacking = map[cache.ObjectName][]string{}
	r.resting = map[cache.ObjectName]time.Time{}
	r.unclear = map[types.UID]string{}
	r.unsubscribeAllLocked()
	r.queue = queue.New[cache.ObjectName](r.name, r.engine.metrics.Queues())
	q := r.queue
	r.mu.Unlock()
	for _, h := range r.rules.schedules {
		q.Add(scheduleKey(h.ID), queue.Due)
	}
	for _, o := range r.own.Objects("") {
		q.Add(nameOf(o), queue.Backlog)
	}
	return q
}

// end ends the term: no key is taken any more.
func (r *resource) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue.ShutDown()
	r.queue = nil
}

// seen takes an event of the resource's own objects.
func (r *resource) seen(ev watch.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queue == nil {
		return
	}
	r.wakeLocked(ev.UID)
	e := r.entryLocked(ev.Key)
	class := queue.Fresh
	switch ev.Kind {
	case watch.Added:
		e.uid, e.fresh, e.came, e.event = ev.UID, !ev.Initial, true, apiwatch.Added
		if ev.Initial {
			class = queue.Backlog
		}
	case watch.Updated:
		e.uid, e.came, e.event = ev.UID, true, cmp.Or(e.event, apiwatch.Modified)
	case watch.Deleted:
		if r.rules.deletes {
			e.gone = append(e.gone, &departed{object: ev.Object, unseen: ev.Unseen})
		}
	}
	r.queue.Add(ev.Key, class)
}

// childSeen takes an event of an object that may be a child: its owner is looked at again. An
// object that changed owners is news for both.
func (r *resource) childSeen(f *feed.Feed, ev watch.Event) {
	defer r.wake(ev.UID)
	owner := r.ownerKey(f, ev.Object)
	if owner != nil {
		r.childNews(*owner, ev)
	}
	if before := r.ownerKey(f, ev.Old); before != nil && (owner == nil || *owner != *before) {
		r.childNews(*before, ev)
	}
}

func (r *resource) childNews(owner cache.ObjectName, ev watch.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queue == nil || ev.Initial {
		return // what is there at the start is seen by the first pass anyhow
	}
	e, known := r.entries[owner]
	if !known {
		return // the owner is not there, or its own first event brings it
	}
	if ev.Kind != watch.Deleted && e.echoes[ev.UID] == ev.Object.GetResourceVersion() {
		delete(e.echoes, ev.UID)
		return
	}
	if e.changed == nil {
		e.changed = map[types.UID]string{}
	}
	e.changed[ev.UID] = ev.Object.GetResourceVersion()
	if ev.Kind == watch.Deleted {
		e.changed[ev.UID] = ""
		delete(e.echoes, ev.UID)
	}
	r.queue.Add(owner, queue.Fresh)
}

// echo notes an own write to a child, so that its event is not taken for news: it may come later,
// or have come before the answer to the request.
func (r *resource) echo(owner cache.ObjectName, child types.UID, version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entryLocked(owner)
	if e.changed[child] == version {
		delete(e.changed, child)
		return
	}
	if e.echoes == nil {
		e.echoes = map[types.UID]string{}
	}
	e.echoes[child] = version
}

// nextResync returns when an object is due for its next resync. The first period is drawn at
// random, so that objects listed together do not come back together.
func (r *resource) nextResync(now time.Time, first bool) time.Time {
	period := r.spec.Resync
	if period <= 0 {
		return time.Time{}
	}
	if first {
		return now.Add(period/10 + rand.N(period-period/10))
	}
	return now.Add(period - rand.N(period/10+1))
}

func nameOf(o metav1.Object) cache.ObjectName {
	return cache.ObjectName{Namespace: o.GetNamespace(), Name: o.GetName()}
}
