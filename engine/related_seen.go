// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// relation is one of the resource's relations at work.
type relation struct {
	dsl.Relation
	number int
	feed   *feed.Feed

	mu            sync.Mutex // guards what follows
	subscriptions *subscriptions
}

// relate prepares the resource's relations.
func (r *resource) relate() {
	for i, spec := range r.spec.Relations() {
		one := &relation{Relation: spec, number: i, subscriptions: newSubscriptions()}
		one.feed = r.engine.newFeed(feed.Settings{
			Name: spec.Resource, Log: r.log.WithValues("related", spec.Name), Source: watch.Source{LabelSelector: spec.LabelSelector},
			On: func(ev watch.Event) { r.relatedSeen(one, ev) }, Granted: r.box.Grant,
		})
		r.relations = append(r.relations, one)
	}
}

// relatedSeen takes an event of a related object: the objects that asked for it are looked at
// again. What a first listing brings counts too, as the resource may have come, or may be allowed,
// long after its owners; those that wait for the listing as a whole are woken when it is complete.
func (r *resource) relatedSeen(one *relation, ev watch.Event) {
	r.box.Wake(ev.UID)
	one.mu.Lock()
	defer one.mu.Unlock()
	one.subscriptions.concerned(ev, func(owner cache.ObjectName) { r.box.RelatedSeen(owner, one.number, ev) })
}

// relatedListed wakes the objects that could not see the related ones of a resource, of which a
// listing is complete now.
func (r *resource) relatedListed(gvr schema.GroupVersionResource) {
	for _, one := range r.relations {
		if !one.feed.Serves(gvr) {
			continue
		}
		one.mu.Lock()
		for owner := range one.subscriptions.blind {
			r.box.Look(owner)
		}
		one.mu.Unlock()
	}
}

// subscribe notes what an object asks for of the relation, and reports whether it is what it asked for before.
func (one *relation) subscribe(owner cache.ObjectName, s subscription) (same bool) {
	one.mu.Lock()
	defer one.mu.Unlock()
	return one.subscriptions.put(owner, s)
}

// blinded notes that an object cannot see the objects of the relation.
func (one *relation) blinded(owner cache.ObjectName) {
	one.mu.Lock()
	defer one.mu.Unlock()
	one.subscriptions.blind[owner] = true
}

// unsubscribe forgets an object that is gone.
func (r *resource) unsubscribe(owner cache.ObjectName) {
	for _, one := range r.relations {
		one.mu.Lock()
		one.subscriptions.drop(owner)
		one.mu.Unlock()
	}
}

// unsubscribeAll forgets all.
func (r *resource) unsubscribeAll() {
	for _, one := range r.relations {
		one.mu.Lock()
		one.subscriptions = newSubscriptions()
		one.mu.Unlock()
	}
}
