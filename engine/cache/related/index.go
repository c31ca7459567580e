// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package related gives handlers the objects that they read without owning them: the relations of one resource. An
// [Index] knows which owner selects which objects, and queues owners when these change. A [View] gives one reconcile its
// related objects, and knows whether handlers have seen them before.
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

// Inbox takes the changes for the resource's objects, here called owners. It must be quick and must not call the index.
type Inbox interface {
	// OnRelatedEvent handles an event of an object that an owner has selected by the relation of this number.
	OnRelatedEvent(owner cache.ObjectName, relation int, ev watch.Event)
	// Enqueue queues an owner.
	Enqueue(owner cache.ObjectName)
	// Wake queues the owners that wait for an event of the object with this UID.
	Wake(uid types.UID)
	// Grant is called when the reason why related objects could not be read is gone.
	Grant()
}

// Settings configure an index. The log is optional.
type Settings struct {
	// Resource has the relations. Own is the source of the resource's objects.
	Resource *dsl.Resource
	Own      *source.Source
	// Sources creates the sources of the relations, which the owner of the index runs.
	Sources *source.Factory
	// Inbox takes the changes.
	Inbox Inbox
	// All is the view of all that counts of an object of the resource itself.
	All progress.View
	// Log is the log of the sources and of selections.
	Log logr.Logger
}

// Index has the relations of a resource. Its methods may be called at any time by any number of goroutines.
type Index struct {
	settings  Settings
	relations []*relation
	// nothing is the view of reconciles if there are no relations.
	nothing *View
}

// relation is a running relation, with the selections of owners.
type relation struct {
	dsl.Relation
	number int
	inbox  Inbox
	source *source.Source
	asked  subscriptions
}

// New returns the index of a resource, without subscriptions.
func New(s Settings) *Index {
	x := &Index{settings: s}
	x.nothing = &View{index: x}
	for i, spec := range s.Resource.Relations() {
		one := &relation{Relation: spec, number: i, inbox: s.Inbox}
		one.source = s.Sources.New(source.Settings{
			Name: spec.Resource, Namespace: spec.Namespace, Object: spec.Object, Log: s.Log.WithValues("related", spec.Name), Source: watch.Source{LabelSelector: spec.LabelSelector, Form: cached.FormOf(spec.Held())},
			Handler: one,
		})
		x.relations = append(x.relations, one)
	}
	return x
}

// named returns the relation with a name, or nil.
func (x *Index) named(name string) *relation {
	if i := slices.IndexFunc(x.relations, func(one *relation) bool { return one.Name == name }); i >= 0 {
		return x.relations[i]
	}
	return nil
}

// Sources yields the names of the relations with their sources.
func (x *Index) Sources(yield func(relation string, f *source.Source) bool) {
	for _, one := range x.relations {
		if !yield(one.Name, one.source) {
			return
		}
	}
}

// OnEvent handles an event of a related object: it queues the owners that have selected the object. Events of a first
// listing count, too: the resource may have come, or may be allowed, long after its owners. Owners that wait for the
// whole listing are woken when it is complete. Parked owners are woken last, so that one reconcile takes both changes.
func (one *relation) OnEvent(ev watch.Event) {
	defer one.inbox.Wake(ev.UID)
	one.asked.eachAffected(ev, func(owner cache.ObjectName) { one.inbox.OnRelatedEvent(owner, one.number, ev) })
}

// Grant implements [source.Handler].
func (one *relation) Grant() { one.inbox.Grant() }

// Listed must be called when a listing of a resource is complete. Owners that could not read its objects are queued.
func (x *Index) Listed(gvr schema.GroupVersionResource) {
	for _, one := range x.relations {
		if one.source.Serves(gvr) {
			one.asked.readers.EachFailed(func(who *reader) { x.settings.Inbox.Enqueue(who.owner) })
		}
	}
}

// Forget removes the selections of an owner that is gone.
func (x *Index) Forget(owner cache.ObjectName) {
	for _, one := range x.relations {
		one.asked.drop(owner)
	}
}

// Clear removes the selections of all owners.
func (x *Index) Clear() {
	for _, one := range x.relations {
		one.asked.clear()
	}
}
