// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package index keeps the indexes of an operator. An [Index] holds values by keys, as JSON, each from one object, and
// knows which keys a change of an object affects. Each index has a source for its objects. [Readers] record what the
// objects of a resource have read, and queue them when that changes. A [View] gives one reconcile access to the indexes.
package index

import (
	"cmp"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Entry is a value under a key. The value is canonical JSON, so equal values are equal texts.
type Entry struct {
	Key   Key
	Value string
}

// Change is the effect of an object's change on an index.
type Change struct {
	// Keys are the keys whose values have changed, each once, in no order.
	Keys []Key
	// Set is true if the set of keys has changed.
	Set bool
}

// Index maps keys to values. The methods may be called by any number of goroutines.
type Index struct {
	mu      sync.Mutex
	objects map[types.NamespacedName]*object
	keys    map[Key]*list
	// set and content are digests of the keys, and of everything: sums, so that the order makes no difference.
	set, content uint64
}

// object has the entries of an object.
type object struct {
	of      types.NamespacedName
	entries []entry
}

// entry is one entry of an object, and its position among them.
type entry struct {
	Entry
	object *object
	at     int32
}

// list has the entries under one key, ordered by the objects' namespaces and names.
type list struct {
	entries []*entry
	// digest is the digest of the values; zero before the first Get.
	digest uint64
}

// newIndex returns an empty index.
func newIndex() *Index {
	return &Index{objects: map[types.NamespacedName]*object{}, keys: map[Key]*list{}}
}

// Put replaces the entries of an object, which may be none, and returns the change.
func (x *Index) Put(of types.NamespacedName, entries []Entry) Change {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.objects[of]
	if len(entries) == 0 {
		return x.replaceLocked(before, nil)
	}
	after := &object{of: of, entries: make([]entry, len(entries))}
	for i, one := range entries {
		after.entries[i] = entry{one, after, int32(i)}
	}
	return x.replaceLocked(before, after)
}

// replaceLocked replaces an object by another state of it; either may be nil. Keys under which both have the same values
// do not change. The lock is held.
func (x *Index) replaceLocked(before, after *object) Change {
	keys := len(x.keys)
	set := x.set
	was, is := before.values(), after.values()
	var out Change
	for key, values := range was {
		if !slices.Equal(values, is[key]) {
			out.Keys = append(out.Keys, key)
		}
	}
	for key := range is {
		if _, had := was[key]; !had {
			out.Keys = append(out.Keys, key)
		}
	}
	x.removeLocked(before)
	x.addLocked(after)
	out.Set = len(x.keys) != keys || x.set != set
	for _, key := range out.Keys {
		if l := x.keys[key]; l != nil {
			l.digest = 0
		}
	}
	return out
}

// values returns the object's values by key, in their order.
func (o *object) values() map[Key][]string {
	if o == nil {
		return nil
	}
	out := make(map[Key][]string, len(o.entries))
	for _, e := range o.entries {
		out[e.Key] = append(out[e.Key], e.Value)
	}
	return out
}

func (x *Index) removeLocked(o *object) {
	if o == nil {
		return
	}
	delete(x.objects, o.of)
	for i := range o.entries {
		e := &o.entries[i]
		l := x.keys[e.Key]
		if at, found := l.find(e); found {
			l.entries = slices.Delete(l.entries, at, at+1)
		}
		x.content -= e.digest()
		if len(l.entries) == 0 {
			delete(x.keys, e.Key)
			x.set -= digestOf(string(e.Key))
		}
	}
}

func (x *Index) addLocked(o *object) {
	if o == nil {
		return
	}
	x.objects[o.of] = o
	for i := range o.entries {
		e := &o.entries[i]
		l := x.keys[e.Key]
		if l == nil {
			l = &list{}
			x.keys[e.Key] = l
			x.set += digestOf(string(e.Key))
		}
		at, _ := l.find(e)
		l.entries = slices.Insert(l.entries, at, e)
		x.content += e.digest()
	}
}

// find returns the position at which an entry is, or belongs.
func (l *list) find(e *entry) (at int, found bool) {
	return slices.BinarySearchFunc(l.entries, e, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.object.of.Namespace, b.object.of.Namespace), cmp.Compare(a.object.of.Name, b.object.of.Name), cmp.Compare(a.at, b.at))
	})
}

// digest returns the digest of an entry with its object, place and key.
func (e *entry) digest() uint64 {
	return digestOf(e.object.of.Namespace, e.object.of.Name, strconv.Itoa(int(e.at)), string(e.Key), e.Value)
}

// digestOf returns a digest of texts, never zero.
func digestOf(texts ...string) uint64 {
	h := fnv.New64a()
	for _, text := range texts {
		_, _ = io.WriteString(h, strconv.Itoa(len(text))+":"+text) // hashes return no errors
	}
	return max(h.Sum64(), 1)
}

// Get returns the values under a key, and their digest. The values are ordered by their objects' namespaces and names,
// and within an object as the object has them. There may be none.
func (x *Index) Get(key Key) (values []string, digest uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.keys[key]
	if l == nil {
		return nil, nothing
	}
	values = make([]string, len(l.entries))
	for i, e := range l.entries {
		values[i] = e.Value
	}
	if l.digest == 0 {
		l.digest = digestOf(values...)
	}
	return values, l.digest
}

// nothing is the digest of no values.
var nothing = digestOf()

// Digest returns the digest of the values under a key. It is never zero.
func (x *Index) Digest(key Key) uint64 {
	x.mu.Lock()
	l := x.keys[key]
	if l == nil || l.digest != 0 {
		defer x.mu.Unlock()
		if l == nil {
			return nothing
		}
		return l.digest
	}
	x.mu.Unlock()
	_, digest := x.Get(key)
	return digest
}

// Keys returns the keys that have values, in their order, and their digest.
func (x *Index) Keys() (keys []Key, digest uint64) {
	x.mu.Lock()
	keys, digest = slices.Collect(maps.Keys(x.keys)), max(x.set, 1)
	x.mu.Unlock()
	slices.SortFunc(keys, compare)
	return keys, digest
}

// digestOfKeys returns the digest of the keys that have values. It is never zero.
func (x *Index) digestOfKeys() uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return max(x.set, 1)
}

// digestOfAll returns the digest of everything. It is never zero.
func (x *Index) digestOfAll() uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return max(x.content, 1)
}

// Has reports whether there are values under a key.
func (x *Index) Has(key Key) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.keys[key] != nil
}

// Size returns how many objects have entries, and how many keys have values.
func (x *Index) Size() (objects, keys int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.objects), len(x.keys)
}
