// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package related serves handlers the objects that they look at without owning them: the relations of one resource. An [Index]
// knows which objects asked for what, and queues them when that changes. A [View] is what one reconcile sees, and knows whether
// handlers have seen it before.
package related

import (
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// Inbox takes changes for the resource's objects, here called owners. It must be quick and must not call the index.
type Inbox interface {
	// RelatedSeen takes an event of an object for which an owner asked by the relation of this number.
	RelatedSeen(owner cache.ObjectName, relation int, ev watch.Event)
	// Look queues an owner.
	Look(owner cache.ObjectName)
	// Wake queues the owners that wait for an event of the object with this UID.
	Wake(uid types.UID)
	// Grant is called when something that kept related objects out is over.
	Grant()
}

// Settings configure an index. The log is optional.
type Settings struct {
	// Resource has the relations, and Own brings its objects in.
	Resource *dsl.Resource
	Own      *source.Source
	// Feeds makes the feeds of the relations, which the owner of the index runs.
	Feeds *source.Factory
	// Inbox takes the changes.
	Inbox Inbox
	// All is the view of all that counts of an object of the resource itself.
	All progress.View
	// Log is that of the feeds and of selections.
	Log logr.Logger
}

// Index has the relations of a resource. Its methods may be called at any time by any number of goroutines.
type Index struct {
	settings  Settings
	relations []*relation
	// nothing is what reconciles see where there are no relations.
	nothing *View
}

// relation is one of them at work, with what owners ask for.
type relation struct {
	dsl.Relation
	number int
	inbox  Inbox
	feed   *source.Source
	asked  subscriptions
}

// New returns the index of a resource, without subscriptions.
func New(s Settings) *Index {
	x := &Index{settings: s}
	x.nothing = &View{index: x}
	for i, spec := range s.Resource.Relations() {
		one := &relation{Relation: spec, number: i, inbox: s.Inbox}
		one.feed = s.Feeds.New(source.Settings{
			Name: spec.Resource, Log: s.Log.WithValues("related", spec.Name), Source: watch.Source{LabelSelector: spec.LabelSelector, Form: cached.FormOf(spec.Held())},
			Handler: one,
		})
		x.relations = append(x.relations, one)
	}
	return x
}

// named returns the relation of a name, or nil.
func (x *Index) named(name string) *relation {
	if i := slices.IndexFunc(x.relations, func(one *relation) bool { return one.Name == name }); i >= 0 {
		return x.relations[i]
	}
	return nil
}

// Feeds yields the names of the relations with their feeds.
func (x *Index) Feeds(yield func(relation string, f *source.Source) bool) {
	for _, one := range x.relations {
		if !yield(one.Name, one.feed) {
			return
		}
	}
}

// OnEvent takes an event of a related object: the owners that asked for it are looked at again. What a first listing
// brings counts too, as the resource may have come, or may be allowed, long after its owners; owners that wait for
// the whole listing are woken when it is complete. Owners that are parked for this event are woken last, so that one reconcile takes both.
func (one *relation) OnEvent(ev watch.Event) {
	defer one.inbox.Wake(ev.UID)
	one.asked.eachAffected(ev, func(owner cache.ObjectName) { one.inbox.RelatedSeen(owner, one.number, ev) })
}

// Grant implements [source.Handler].
func (one *relation) Grant() { one.inbox.Grant() }

// Listed must be called when a listing of a resource is complete: owners that could not see its objects are looked
// at again.
func (x *Index) Listed(gvr schema.GroupVersionResource) {
	for _, one := range x.relations {
		if one.feed.Serves(gvr) {
			one.asked.readers.EachMissed(func(who *reader) { x.settings.Inbox.Look(who.owner) })
		}
	}
}

// Forget drops what an owner asked for that is gone.
func (x *Index) Forget(owner cache.ObjectName) {
	for _, one := range x.relations {
		one.asked.drop(owner)
	}
}

// Clear drops what all owners asked for.
func (x *Index) Clear() {
	for _, one := range x.relations {
		one.asked.clear()
	}
}
