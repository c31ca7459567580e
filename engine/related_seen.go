// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/queue"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// relation is one of the resource's relations at work.
type relation struct {
	dsl.Relation
	number int
	feed   *feed.Feed
	// subscriptions is guarded by the resource's lock.
	subscriptions *subscriptions
}

// relate prepares the resource's relations.
func (r *resource) relate() {
	for i, spec := range r.spec.Relations() {
		one := &relation{Relation: spec, number: i, subscriptions: newSubscriptions()}
		one.feed = r.engine.newFeed(feed.Settings{
			Name: spec.Resource, Log: r.log.WithValues("related", spec.Name), Source: watch.Source{LabelSelector: spec.LabelSelector},
			On: func(ev watch.Event) { r.relatedSeen(one, ev) }, Granted: r.granted,
		})
		r.relations = append(r.relations, one)
	}
}

// relatedSeen takes an event of a related object: the objects that asked for it are looked at
// again. What a first listing brings counts too, as the resource may have come, or may be allowed,
// long after its owners; those that wait for the listing as a whole are woken when it is complete.
func (r *resource) relatedSeen(one *relation, ev watch.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queue == nil {
		return
	}
	r.wakeLocked(ev.UID)
	one.subscriptions.concerned(ev, func(owner cache.ObjectName) {
		e, known := r.entries[owner]
		if !known {
			return
		}
		if e.related == nil {
			e.related = &relatedNews{}
		}
		e.related.note(one.number, ev)
		r.queue.Add(owner, queue.Fresh)
	})
}

// relatedListed wakes the objects that could not see the related ones of a resource, of which a
// listing is complete now.
func (r *resource) relatedListed(gvr schema.GroupVersionResource) {
	for _, one := range r.relations {
		if !one.feed.Serves(gvr) {
			continue
		}
		r.mu.Lock()
		if r.queue != nil {
			for owner := range one.subscriptions.blind {
				r.queue.Add(owner, queue.Fresh)
			}
		}
		r.mu.Unlock()
	}
}

// subscribe notes what an object asks for of a relation, and reports whether it is what it asked
// for before.
func (r *resource) subscribe(one *relation, owner cache.ObjectName, s subscription) (same bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return one.subscriptions.put(owner, s)
}

// blinded notes that an object cannot see the objects of a relation.
func (r *resource) blinded(one *relation, owner cache.ObjectName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one.subscriptions.blind[owner] = true
}

// unsubscribe forgets an object that is gone.
func (r *resource) unsubscribe(owner cache.ObjectName) {
	if len(r.relations) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.relations {
		one.subscriptions.drop(owner)
	}
}

// unsubscribeAllLocked forgets all. The resource's lock is held.
func (r *resource) unsubscribeAllLocked() {
	for _, one := range r.relations {
		one.subscriptions = newSubscriptions()
	}
}
