// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cached"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// subscription is what an object asked for of a relation, without what only a pass can decide.
type subscription struct {
	// namespace is the only one; empty means all.
	namespace string
	// names are the only ones; nil means any.
	names []string
	// labels selects; nil means any.
	labels labels.Selector
}

// subscribed reads a selection. Related objects without namespaces have none to ask for.
func subscribed(s dsl.Selection, namespaced bool) subscription {
	out := subscription{namespace: s.Namespace, names: s.Names, labels: s.Labels}
	if !namespaced {
		out.namespace = ""
	}
	if out.labels != nil && out.labels.Empty() {
		out.labels = nil
	}
	return out
}

// same reports whether two subscriptions ask for the same.
func (s subscription) same(t subscription) bool {
	if s.namespace != t.namespace || (s.names == nil) != (t.names == nil) || len(s.names) != len(t.names) {
		return false
	}
	for i := range s.names {
		if s.names[i] != t.names[i] {
			return false
		}
	}
	return s.labels == nil && t.labels == nil || s.labels != nil && t.labels != nil && s.labels.String() == t.labels.String()
}

// keys sorts the subscription in: under the objects that it names, or under its namespace.
func (s subscription) keys() (names []cache.ObjectName, namespace string, listed bool) {
	for _, name := range s.names {
		names = append(names, cache.ObjectName{Namespace: s.namespace, Name: name})
	}
	return names, s.namespace, s.names == nil
}

// subscriptions knows for one relation which objects asked for what, so that an event wakes those
// that it may concern. Those that name objects are found at once; the others are gone through, the
// ones of the event's namespace and of all namespaces. The resource's lock guards it.
type subscriptions struct {
	of map[cache.ObjectName]subscription
	// named are owners by the objects that they name; in an empty namespace those of any.
	named map[cache.ObjectName]map[cache.ObjectName]bool
	// listed are the other owners, by namespace.
	listed map[string]map[cache.ObjectName]bool
	// blind are owners that could not see the related objects; see pass.look.
	blind map[cache.ObjectName]bool
}

func newSubscriptions() *subscriptions {
	return &subscriptions{
		of:    map[cache.ObjectName]subscription{},
		named: map[cache.ObjectName]map[cache.ObjectName]bool{}, listed: map[string]map[cache.ObjectName]bool{},
		blind: map[cache.ObjectName]bool{},
	}
}

// put notes what an owner asks for from now on, and reports whether it is what it asked for before.
func (x *subscriptions) put(owner cache.ObjectName, s subscription) (same bool) {
	if old, found := x.of[owner]; found && old.same(s) {
		delete(x.blind, owner)
		return true
	}
	x.drop(owner)
	x.of[owner] = s
	names, namespace, listed := s.keys()
	for _, key := range names {
		enter(x.named, key, owner)
	}
	if listed {
		enter(x.listed, namespace, owner)
	}
	return false
}

// drop forgets an owner.
func (x *subscriptions) drop(owner cache.ObjectName) {
	delete(x.blind, owner)
	s, found := x.of[owner]
	if !found {
		return
	}
	delete(x.of, owner)
	names, namespace, listed := s.keys()
	for _, key := range names {
		leave(x.named, key, owner)
	}
	if listed {
		leave(x.listed, namespace, owner)
	}
}

func enter[K comparable](index map[K]map[cache.ObjectName]bool, key K, owner cache.ObjectName) {
	if index[key] == nil {
		index[key] = map[cache.ObjectName]bool{}
	}
	index[key][owner] = true
}

func leave[K comparable](index map[K]map[cache.ObjectName]bool, key K, owner cache.ObjectName) {
	delete(index[key], owner)
	if len(index[key]) == 0 {
		delete(index, key)
	}
}

// concerned calls visit for each owner that asked for the object, as it is or as it was.
func (x *subscriptions) concerned(ev watch.Event, visit func(owner cache.ObjectName)) {
	sides := sidesOf(ev)
	seen := map[cache.ObjectName]bool{}
	look := func(owners map[cache.ObjectName]bool) {
		for owner := range owners {
			if !seen[owner] && sides.match(x.of[owner].labels) {
				seen[owner] = true
				visit(owner)
			}
		}
	}
	look(x.named[ev.Key])
	look(x.listed[ev.Key.Namespace])
	if ev.Key.Namespace != "" {
		look(x.named[cache.ObjectName{Name: ev.Key.Name}])
		look(x.listed[""])
	}
}

// sides are the labels of an event's object, as it is and as it was. They are decoded only when
// somebody asks.
type sides struct {
	objects []*cached.Object
	sets    []labels.Set
}

func sidesOf(ev watch.Event) *sides {
	s := &sides{objects: []*cached.Object{ev.Object}}
	if ev.Old != nil {
		s.objects = append(s.objects, ev.Old)
	}
	return s
}

func (s *sides) match(selector labels.Selector) bool {
	if selector == nil || s.objects[0].GetUID() == "" { // of one that nobody saw go, only the name may be known
		return true
	}
	for i, o := range s.objects {
		if len(s.sets) <= i {
			s.sets = append(s.sets, labels.Set(o.GetLabels()))
		}
		if selector.Matches(s.sets[i]) {
			return true
		}
	}
	return false
}
