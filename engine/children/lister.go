// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

// id names a child.
type id struct {
	gvr schema.GroupVersionResource
	key cache.ObjectName
}

// lister reads the children of an owner. It returns them as the reconcile has applied them, or else as the caches have
// them. In its zero value, the reconcile has applied no child.
type lister struct {
	mu sync.Mutex
	// applied are children as the reconcile leaves them.
	applied map[id]*unstructured.Unstructured
}

// get returns a private copy of a child: as the reconcile has applied it, or else as the cache of its source has it. It
// returns nil if neither has the child. The source may be nil.
func (l *lister) get(f *source.Source, which id) *unstructured.Unstructured {
	if applied := l.kept(which); applied != nil {
		return applied.DeepCopy()
	}
	return l.show(f, which)
}

// show is get for callers that change nothing: it does not copy a child that the reconcile has applied.
func (l *lister) show(f *source.Source, which id) *unstructured.Unstructured {
	if applied := l.kept(which); applied != nil {
		return applied
	}
	if f == nil {
		return nil
	}
	if o, found := f.Get(which.key); found {
		return o.Tree()
	}
	return nil
}

// kept returns a child as the reconcile has applied it; nil if it has not.
func (l *lister) kept(which id) *unstructured.Unstructured {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.applied[which]
}

// keep stores a child as the reconcile leaves it. Nobody may change the child afterwards.
func (l *lister) keep(which id, o *unstructured.Unstructured) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.applied == nil {
		l.applied = map[id]*unstructured.Unstructured{}
	}
	l.applied[which] = o
}

// has reports whether the reconcile has applied a child.
func (l *lister) has(which id) bool { return l.kept(which) != nil }

// empty reports whether the reconcile has applied no child.
func (l *lister) empty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.applied) == 0
}

// staleRank ranks children for sorting, by their UIDs: 0 if this reconcile has applied a child and it is not being deleted, else 1.
func (l *lister) staleRank(all []dsl.ChildObject) map[types.UID]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.applied) == 0 {
		return nil
	}
	out := map[types.UID]int{}
	for _, one := range all {
		out[one.Object.GetUID()] = 1
	}
	for _, o := range l.applied {
		if o.GetDeletionTimestamp() == nil {
			delete(out, o.GetUID())
		}
	}
	return out
}

// some reports whether a function holds for a child that the reconcile has applied.
func (l *lister) some(holds func(*unstructured.Unstructured) bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.applied {
		if holds(o) {
			return true
		}
	}
	return false
}

// matching returns the children that the reconcile has applied and that a function selects. If shares is true, they are
// not copied.
func (l *lister) matching(selects func(*unstructured.Unstructured) bool, shares bool) (out []*unstructured.Unstructured) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.applied {
		switch {
		case !selects(o):
		case shares:
			out = append(out, o)
		default:
			out = append(out, o.DeepCopy())
		}
	}
	return out
}

// list returns the owner's children from a source, sorted. If shares is true, it reads them with show. If skips is set,
// it excludes cached objects.
func (l *lister) list(f *source.Source, owner ownership.Owner, shares bool, skips func(*cached.Object) bool) (out []*unstructured.Unstructured) {
	gvr, keys, read := f.Resource().GVR, map[cache.ObjectName]bool{}, l.get
	if shares {
		read = l.show
	}
	for _, mark := range owner.IndexValues() {
		for _, o := range f.OwnedBy(mark) {
			if key := cache.MetaObjectToName(o); skips == nil || l.has(id{gvr, key}) || !skips(o) {
				keys[key] = true
			}
		}
	}
	l.mu.Lock()
	for which := range l.applied {
		if which.gvr == gvr {
			keys[which.key] = true
		}
	}
	l.mu.Unlock()
	for _, key := range slices.SortedFunc(maps.Keys(keys), func(a, b cache.ObjectName) int { return strings.Compare(a.String(), b.String()) }) {
		if o := read(f, id{gvr, key}); o != nil && owner.Has(o) {
			out = append(out, o)
		}
	}
	return out
}
