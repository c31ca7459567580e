// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package related

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/decide/subscription"
)

// subscriptions knows the selections of owners for one relation, so that an event wakes the owners that it may concern.
// Owners that name objects are found at once. The others are searched: those with the event's namespace, and those with
// all namespaces.
type subscriptions struct {
	// readers are found by the objects that they name, or by their namespace with an empty name. An empty namespace
	// means any.
	readers subscription.Readers[cache.ObjectName, *reader]

	mu sync.Mutex
	of map[cache.ObjectName]*reader
}

// reader is an owner with its selection, which does not change. The selection has no Match, because only a reconcile
// can call that.
type reader struct {
	dsl.Selection
	owner cache.ObjectName
}

// clear removes all owners.
func (x *subscriptions) clear() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.of = nil
	x.readers.Clear()
}

// put stores the selection of an owner, and reports whether it was the same before.
func (x *subscriptions) put(owner cache.ObjectName, s dsl.Selection) (who *reader, unchanged bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if old := x.of[owner]; old != nil && asksTheSame(old.Selection, s) {
		x.readers.Recovered(old)
		return old, true
	}
	x.dropLocked(owner)
	s.Match = nil
	if x.of == nil {
		x.of = map[cache.ObjectName]*reader{}
	}
	who = &reader{s, owner}
	x.of[owner] = who
	x.readers.Add(who, keysOf(s)...)
	return who, false
}

// drop removes an owner.
func (x *subscriptions) drop(owner cache.ObjectName) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.dropLocked(owner)
}

func (x *subscriptions) dropLocked(owner cache.ObjectName) {
	if old := x.of[owner]; old != nil {
		x.readers.Recovered(old)
		x.readers.Remove(old, keysOf(old.Selection)...)
		delete(x.of, owner)
	}
}

// eachAffected visits each owner that has selected the event's object, as it is or as it was.
func (x *subscriptions) eachAffected(ev watch.Event, visit func(owner cache.ObjectName)) {
	x.mu.Lock() // an owner that changes its selection has no subscription for a moment
	defer x.mu.Unlock()
	oldAndNew := sync.OnceValue(func() (out []labels.Set) { // decoded only if a reader selects by labels
		for _, o := range []*cached.Object{ev.Object, ev.Old} {
			if o != nil {
				out = append(out, o.GetLabels())
			}
		}
		return out
	})
	keys := []cache.ObjectName{ev.Key, {Name: ev.Key.Name}, {Namespace: ev.Key.Namespace}, {}}
	if ev.Key.Namespace == "" {
		keys = []cache.ObjectName{ev.Key, {}}
	}
	x.readers.Each(func(who *reader) { // each reader is under only one of these keys
		if who.Labels == nil || ev.Object.GetUID() == "" || // after a deletion that the watch missed, only the name may be known
			slices.ContainsFunc(oldAndNew(), func(s labels.Set) bool { return who.Labels.Matches(s) }) {
			visit(who.owner)
		}
	}, keys...)
}

// keysOf returns the keys under which a selection is found.
func keysOf(s dsl.Selection) (keys []cache.ObjectName) {
	if s.Names == nil {
		return []cache.ObjectName{{Namespace: s.Namespace}}
	}
	for _, name := range s.Names {
		if name != "" { // no object has an empty name
			keys = append(keys, cache.ObjectName{Namespace: s.Namespace, Name: name})
		}
	}
	return keys
}

// asksTheSame reports whether two selections are the same apart from Match.
func asksTheSame(a, b dsl.Selection) bool {
	return a.Namespace == b.Namespace && (a.Names == nil) == (b.Names == nil) && slices.Equal(a.Names, b.Names) &&
		(a.Labels == nil) == (b.Labels == nil) && (a.Labels == nil || a.Labels.String() == b.Labels.String())
}

// plain returns the stored form of a selection. It has no namespace for objects without namespaces, and no label
// selector if that selects everything.
func plain(s dsl.Selection, namespaced bool) dsl.Selection {
	if !namespaced {
		s.Namespace = ""
	}
	if s.Labels != nil && s.Labels.Empty() {
		s.Labels = nil
	}
	return s
}
