// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package related

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cached"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// subscriptions knows for one relation which owners asked for what, so that an event wakes those that it may concern.
// Owners that name objects are found at once; the others are gone through, those of the event's namespace and of all
// namespaces.
type subscriptions struct {
	mu sync.Mutex
	// of has what each owner asked for, without the condition that only a pass can ask.
	of map[cache.ObjectName]dsl.Selection
	// owners are the owners by the objects that they name, or by their namespace with an empty name. An empty
	// namespace is any.
	owners map[cache.ObjectName]sets.Set[cache.ObjectName]
	// unsynced are owners that could not see the related objects.
	unsynced sets.Set[cache.ObjectName]
}

func newSubscriptions() *subscriptions {
	x := &subscriptions{}
	x.clear()
	return x
}

// clear forgets all owners.
func (x *subscriptions) clear() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.of, x.owners = map[cache.ObjectName]dsl.Selection{}, map[cache.ObjectName]sets.Set[cache.ObjectName]{}
	x.unsynced = sets.New[cache.ObjectName]()
}

// put notes what an owner asks for from now on, and reports whether it asked for the same before.
func (x *subscriptions) put(owner cache.ObjectName, s dsl.Selection) (unchanged bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if old, found := x.of[owner]; found && asksTheSame(old, s) {
		x.unsynced.Delete(owner)
		return true
	}
	x.dropLocked(owner)
	s.Match = nil
	x.of[owner] = s
	for _, key := range keysOf(s) {
		if x.owners[key] == nil {
			x.owners[key] = sets.New[cache.ObjectName]()
		}
		x.owners[key].Insert(owner)
	}
	return false
}

// drop forgets an owner.
func (x *subscriptions) drop(owner cache.ObjectName) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.dropLocked(owner)
}

func (x *subscriptions) dropLocked(owner cache.ObjectName) {
	x.unsynced.Delete(owner)
	for _, key := range keysOf(x.of[owner]) {
		if x.owners[key].Delete(owner); len(x.owners[key]) == 0 {
			delete(x.owners, key)
		}
	}
	delete(x.of, owner)
}

// missed notes that an owner cannot see the related objects, until it is put or dropped.
func (x *subscriptions) missed(owner cache.ObjectName) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.unsynced.Insert(owner)
}

// eachUnsynced visits the owners that cannot see the related objects.
func (x *subscriptions) eachUnsynced(visit func(owner cache.ObjectName)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for owner := range x.unsynced {
		visit(owner)
	}
}

// eachAffected visits each owner that asked for the event's object, as it is or as it was.
func (x *subscriptions) eachAffected(ev watch.Event, visit func(owner cache.ObjectName)) {
	x.mu.Lock()
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
	for _, key := range keys {
		for owner := range x.owners[key] { // each is under one of these alone
			selector := x.of[owner].Labels
			if selector == nil || ev.Object.GetUID() == "" || // of one that nobody saw go, only the name may be known
				slices.ContainsFunc(oldAndNew(), func(s labels.Set) bool { return selector.Matches(s) }) {
				visit(owner)
			}
		}
	}
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
