// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// object is an object of any kind. Those of a cache are not to be changed.
type object interface {
	metav1.Object
	runtime.Object
}

// cache has the objects of one kind as the watch and the own writes show them.
type cache struct {
	mu      sync.RWMutex
	objects map[types.NamespacedName]object
	// owned has the objects by their controllers, and within by their namespaces.
	owned  map[types.UID][]object
	within map[string][]object
	// ended are the uids of the last objects that were dropped.
	ended []types.UID
}

func newCache() *cache {
	return &cache{
		objects: map[types.NamespacedName]object{}, owned: map[types.UID][]object{}, within: map[string][]object{},
	}
}

// knows reports whether the cache has the object in this version or a newer one, or has seen its end.
func (c *cache) knows(o metav1.Object) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.stale(o)
}

func (c *cache) stale(o metav1.Object) bool {
	have, found := c.objects[keyOf(o)]
	return slices.Contains(c.ended, o.GetUID()) || found && have.GetUID() == o.GetUID() && versionOf(have) >= versionOf(o)
}

// put stores an object, unless the cache knows a newer one.
func (c *cache) put(o object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stale(o) {
		c.set(o)
	}
}

func (c *cache) set(o object) {
	k := keyOf(o)
	if old := c.objects[k]; old != nil {
		c.index(old, false)
	}
	c.objects[k] = o
	c.index(o, true)
}

// mark shows an object as one that is being deleted, until the watch does, unless the cache has another by now.
func (c *cache) mark(o object, since metav1.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.objects[keyOf(o)] == o {
		c.set(ending(o, since))
	}
}

// remembered is how many ends of objects a cache keeps in mind: an answer to an own write may come after the end.
const remembered = 64

// drop removes an object and returns it; nil if the cache does not have it.
func (c *cache) drop(k types.NamespacedName, uid types.UID) object {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended = append(c.ended, uid); len(c.ended) > remembered {
		c.ended = slices.Clone(c.ended[len(c.ended)-remembered/2:])
	}
	old := c.objects[k]
	if old == nil || old.GetUID() != uid {
		return nil
	}
	c.index(old, false)
	delete(c.objects, k)
	return old
}

func (c *cache) index(o object, in bool) {
	enter(c.within, o.GetNamespace(), o, in)
	if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
		enter(c.owned, ref.UID, o, in)
	}
}

// enter puts an object into a sorted list of an index, or takes it out.
func enter[K comparable](index map[K][]object, at K, o object, in bool) {
	i, found := slices.BinarySearchFunc(index[at], o, byAge)
	switch {
	case in && !found:
		index[at] = slices.Insert(index[at], i, o)
	case !in && found:
		if index[at] = slices.Delete(index[at], i, i+1); len(index[at]) == 0 {
			delete(index, at)
		}
	}
}

// get returns an object, or nil.
func (c *cache) get(namespace, name string) object {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.objects[types.NamespacedName{Namespace: namespace, Name: name}]
}

// all returns all objects, the oldest first.
func (c *cache) all() []object {
	c.mu.RLock()
	defer c.mu.RUnlock()
	out := slices.Collect(maps.Values(c.objects))
	slices.SortFunc(out, byAge)
	return out
}

// of returns the objects that an owner controls, the oldest first.
func (c *cache) of(owner types.UID) []object {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Clone(c.owned[owner])
}

// in returns the objects of a namespace, the oldest first.
func (c *cache) in(namespace string) []object {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Clone(c.within[namespace])
}

// keys are those of all objects.
func (c *cache) keys() map[types.NamespacedName]types.UID {
	c.mu.RLock()
	defer c.mu.RUnlock()
	out := make(map[types.NamespacedName]types.UID, len(c.objects))
	for k, o := range c.objects {
		out[k] = o.GetUID()
	}
	return out
}

// byAge compares objects by their creation; those of one second by their names.
func byAge(a, b object) int {
	from, to := a.GetCreationTimestamp().Time, b.GetCreationTimestamp().Time
	return cmp.Or(from.Compare(to), cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

// ending returns a copy of an object that is being deleted, for the time until the watch shows it so.
func ending(o object, since metav1.Time) object {
	out := o.DeepCopyObject().(object)
	out.SetDeletionTimestamp(&since)
	return out
}

func keyOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// versionOf returns the version as a number, which is comparable since Kubernetes 1.35.
func versionOf(o metav1.Object) int64 {
	n, err := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
