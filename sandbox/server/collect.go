// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"slices"

	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func comparePlaces(a, b place) int {
	return cmp.Or(cmp.Compare(a.table.group, b.table.group), cmp.Compare(a.table.plural, b.table.plural),
		cmp.Compare(a.key.Namespace, b.key.Namespace), cmp.Compare(a.key.Name, b.key.Name))
}

// collectLater plans a look at the objects that are due. A timer needs no goroutine until then.
func (s *Server) collectLater() {
	if s.garbage.waits || len(s.garbage.due) == 0 {
		return
	}
	s.garbage.waits = true
	s.later(collectLag, func() {
		s.mu.Lock()
		defer s.unlock()
		s.garbage.waits = false
		n := min(collectPart, len(s.garbage.due))
		part := s.garbage.due[:n]
		s.garbage.due = slices.Clone(s.garbage.due[n:])
		for i, p := range part {
			if !slices.Contains(part[:i], p) {
				s.byItself(func() { s.collect(p) })
			}
		}
		s.collectLater()
	})
}

// collected takes a write into account, also for those owners that wait for their dependents.
func (s *Server) collected(t *table, c store.Change, o *unstructured.Unstructured) {
	if t.stored != nil {
		t = s.tables[coreEvents()]
	}
	p := place{t, types.NamespacedName{Namespace: c.Row.Namespace, Name: c.Row.Name}}
	before := s.garbage.owners[p]
	s.garbage.note(p, c, o)
	for _, owner := range before {
		if t := s.kindred(owner); t != nil {
			if key := t.within(p.key.Namespace, owner.Name); t.objects.Get(key.Namespace, key.Name) != nil {
				s.garbage.due = append(s.garbage.due, place{t, key})
			}
		}
	}
	s.collectLater()
}

// recount takes the owners of all objects, after they were replaced.
func (s *Server) recount() {
	s.garbage = newGarbage()
	for _, t := range s.sorted() {
		if t.stored != nil {
			continue
		}
		for _, row := range t.objects.In("") {
			p := place{t, types.NamespacedName{Namespace: row.Namespace, Name: row.Name}}
			s.garbage.record(p, row.Tree().GetOwnerReferences())
			s.garbage.due = append(s.garbage.due, p)
		}
	}
	s.collectLater()
}

// collect looks at an object as the garbage collector does: it may be garbage, or wait for its dependents.
func (s *Server) collect(p place) {
	o := p.table.get(p.key)
	if o == nil {
		return
	}
	if o.GetDeletionTimestamp() != nil {
		switch {
		case slices.Contains(o.GetFinalizers(), metav1.FinalizerOrphanDependents):
			s.orphan(p.table, o)
		case slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents):
			s.foreground(p.table, o)
		}
		return
	}
	if owners := s.classify(p, o); owners.gone+owners.waiting > 0 {
		s.reclaim(p, o, owners)
	}
}

// owners are those of an object by what has become of them.
type owners struct {
	solid         []metav1.OwnerReference
	gone, waiting int
}

// classify finds the owners of an object. One of an unknown kind counts as there, as does one that has a namespace if
// the object has none.
func (s *Server) classify(p place, o *unstructured.Unstructured) owners {
	var out owners
	for _, ref := range o.GetOwnerReferences() {
		t := s.kindred(ref)
		if t == nil || t.namespaced && !p.table.namespaced {
			out.solid = append(out.solid, ref)
			continue
		}
		owner := t.get(t.within(p.key.Namespace, ref.Name))
		switch {
		case owner == nil || owner.GetUID() != ref.UID:
			out.gone++
		case owner.GetDeletionTimestamp() != nil && slices.Contains(owner.GetFinalizers(), metav1.FinalizerDeleteDependents):
			out.waiting++
		default:
			out.solid = append(out.solid, ref)
		}
	}
	return out
}

// reclaim deletes an object without an owner that stays, or takes the others off.
func (s *Server) reclaim(p place, o *unstructured.Unstructured, found owners) {
	if len(found.solid) > 0 {
		next := o.DeepCopy()
		next.SetOwnerReferences(found.solid)
		s.collectorWrites(p.table, o, next)
		return
	}
	policy := metav1.DeletePropagationBackground
	if found.waiting > 0 && s.circles(o) {
		o = s.unblock(p.table, o)
	}
	switch {
	case found.waiting > 0 && len(s.garbage.dependents[o.GetUID()]) > 0, slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents):
		policy = metav1.DeletePropagationForeground
	case slices.Contains(o.GetFinalizers(), metav1.FinalizerOrphanDependents):
		policy = metav1.DeletePropagationOrphan
	}
	_, _ = s.delete(p.table, o, metav1.DeleteOptions{PropagationPolicy: &policy}) // it has no precondition that could fail
}

// circles reports whether a dependent of an object waits for its own dependents: the two may wait for each other.
func (s *Server) circles(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(s.garbage.of(o.GetUID()), func(p place) bool {
		dependent := p.table.get(p.key)
		return dependent != nil && dependent.GetDeletionTimestamp() != nil && slices.Contains(dependent.GetFinalizers(), metav1.FinalizerDeleteDependents)
	})
}

// unblock makes an object block the deletion of no owner.
func (s *Server) unblock(t *table, o *unstructured.Unstructured) *unstructured.Unstructured {
	next := o.DeepCopy()
	refs := next.GetOwnerReferences()
	for i := range refs {
		refs[i].BlockOwnerDeletion = new(bool)
	}
	next.SetOwnerReferences(refs)
	return s.collectorWrites(t, o, next)
}

// collectorWrites stores what the collector has changed in an object.
func (s *Server) collectorWrites(t *table, old, next *unstructured.Unstructured) *unstructured.Unstructured {
	return s.commit(t, store.Modified, s.owners.updated(t, Request{agent: "kube-controller-manager"}, old, next))
}

// foreground lets an owner go when no dependent blocks its deletion any more.
func (s *Server) foreground(t *table, o *unstructured.Unstructured) {
	for p := range s.garbage.dependents[o.GetUID()] {
		for _, owner := range s.garbage.owners[p] {
			if owner.UID == o.GetUID() && owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion {
				return
			}
		}
	}
	s.release(t, o, metav1.FinalizerDeleteDependents)
}

// orphan takes an owner off its dependents and lets it go.
func (s *Server) orphan(t *table, o *unstructured.Unstructured) {
	for _, p := range s.garbage.of(o.GetUID()) {
		dependent := p.table.get(p.key)
		if dependent == nil {
			continue
		}
		next := dependent.DeepCopy()
		left := slices.DeleteFunc(next.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == o.GetUID() })
		if next.SetOwnerReferences(left); len(left) == 0 {
			unstructured.RemoveNestedField(next.Object, "metadata", "ownerReferences")
		}
		s.collectorWrites(p.table, dependent, next)
	}
	s.release(t, o, metav1.FinalizerOrphanDependents)
}

// release removes a finalizer from an object that is being deleted, and the object with the last one.
func (s *Server) release(t *table, o *unstructured.Unstructured, finalizer string) {
	next := o.DeepCopy()
	next.SetFinalizers(slices.DeleteFunc(next.GetFinalizers(), func(f string) bool { return f == finalizer }))
	if len(next.GetFinalizers()) == 0 && left(next) == 0 && !s.contains(t, next) {
		s.commit(t, store.Deleted, next)
		s.unserve()
		return
	}
	s.collectorWrites(t, o, next)
}

// kindred returns the table of an owner's kind, or nil.
func (s *Server) kindred(owner metav1.OwnerReference) *table {
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return nil
	}
	for _, t := range s.tables {
		if t.group == version.Group && t.kind == owner.Kind && t.stored == nil {
			return t
		}
	}
	return nil
}

// within returns the key of a name in a namespace, or without one if the resource has none.
func (t *table) within(namespace, name string) types.NamespacedName {
	if !t.namespaced {
		namespace = ""
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}
