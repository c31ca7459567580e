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

// subscriptions knows for one relation which owners asked for what, so that an event wakes those that it may concern.
// Owners that name objects are found at once; the others are gone through, those of the event's namespace and of all
// namespaces.
type subscriptions struct {
	// readers are by the objects that they name, or by their namespace with an empty name. An empty namespace is any.
	readers subscription.Book[cache.ObjectName, *reader]

	mu sync.Mutex
	of map[cache.ObjectName]*reader
}

// reader is an owner with what it asked for, without the condition that only a reconcile can ask. It does not change.
type reader struct {
	dsl.Selection
	owner cache.ObjectName
}

// clear forgets all owners.
func (x *subscriptions) clear() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.of = nil
	x.readers.Clear()
}

// put notes what an owner asks for from now on, and reports whether it asked for the same before.
func (x *subscriptions) put(owner cache.ObjectName, s dsl.Selection) (who *reader, unchanged bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if old := x.of[owner]; old != nil && asksTheSame(old.Selection, s) {
		x.readers.Found(old)
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

// drop forgets an owner.
func (x *subscriptions) drop(owner cache.ObjectName) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.dropLocked(owner)
}

func (x *subscriptions) dropLocked(owner cache.ObjectName) {
	if old := x.of[owner]; old != nil {
		x.readers.Found(old)
		x.readers.Drop(old, keysOf(old.Selection)...)
		delete(x.of, owner)
	}
}

// eachAffected visits each owner that asked for the event's object, as it is or as it was.
func (x *subscriptions) eachAffected(ev watch.Event, visit func(owner cache.ObjectName)) {
	x.mu.Lock() // an owner that asks for something else has no subscription for a moment
	defer x.mu.Unlock()
	oldAndNew := sync.OnceValue(func() (out []labels.Set) { // which are decoded where somebody asks
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
	x.readers.Each(func(who *reader) { // each is under one of these alone
		if who.Labels == nil || ev.Object.GetUID() == "" || // after a deletion that the watch missed, only the name may be known
			slices.ContainsFunc(oldAndNew(), func(s labels.Set) bool { return who.Labels.Matches(s) }) {
			visit(who.owner)
		}
	}, keys...)
}

// keysOf returns under what an owner that asks for this is found.
func keysOf(s dsl.Selection) (keys []cache.ObjectName) {
	if s.Names == nil {
		return []cache.ObjectName{{Namespace: s.Namespace}}
	}
	for _, name := range s.Names {
		if name != "" { // no object has that
			keys = append(keys, cache.ObjectName{Namespace: s.Namespace, Name: name})
		}
	}
	return keys
}

// asksTheSame reports whether two selections are the same but for their conditions.
func asksTheSame(a, b dsl.Selection) bool {
	return a.Namespace == b.Namespace && (a.Names == nil) == (b.Names == nil) && slices.Equal(a.Names, b.Names) &&
		(a.Labels == nil) == (b.Labels == nil) && (a.Labels == nil || a.Labels.String() == b.Labels.String())
}

// plain returns a selection in the form in which it is kept: related objects without namespaces have none to ask for,
// and what selects all labels selects none.
func plain(s dsl.Selection, namespaced bool) dsl.Selection {
	if !namespaced {
		s.Namespace = ""
	}
	if s.Labels != nil && s.Labels.Empty() {
		s.Labels = nil
	}
	return s
}
