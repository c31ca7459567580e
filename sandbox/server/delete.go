// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// delete removes an object, or marks it as deleted while finalizers or a grace period hold it. It returns the
// marked object.
func (s *Server) delete(t *table, o *unstructured.Unstructured, options metav1.DeleteOptions) (*unstructured.Unstructured, error) {
	if t.custom { // it may be stored as earlier schemas had it
		o = t.viewIn(strings.TrimPrefix(o.GetAPIVersion(), t.group+"/")).show(o)
	}
	if err := meets(t, o, options.Preconditions); err != nil {
		return nil, err
	}
	if t.name() == crds() && s.garbage != nil && o.GetDeletionTimestamp() == nil {
		return s.abolish(t, o)
	}
	grace := graceOf(t, o, options.GracePeriodSeconds)
	if next := s.propagated(t, o, options); next != o && o.GetDeletionTimestamp() != nil {
		o = s.commit(t, store.Modified, next.DeepCopy())
		if len(o.GetFinalizers()) == 0 && left(o) == 0 && !s.contains(t, o) {
			s.commit(t, store.Deleted, o.DeepCopy())
			return nil, nil
		}
	} else {
		o = next
	}
	switch {
	case o.GetDeletionTimestamp() != nil:
		return s.shorten(t, o, grace), nil
	case grace == 0 && !s.isHeld(t, o):
		s.commit(t, store.Deleted, o.DeepCopy())
		s.unserve()
		return nil, nil
	}
	return s.mark(t, o, grace)
}

// isHeld reports whether finalizers or its content keep an object that is deleted.
func (s *Server) isHeld(t *table, o *unstructured.Unstructured) bool {
	return len(o.GetFinalizers()) > 0 || len(heldBy(o)) > 0 || s.contains(t, o)
}

// mark marks an object as deleted, and deletes what is in it.
func (s *Server) mark(t *table, o *unstructured.Unstructured, grace int64) (*unstructured.Unstructured, error) {
	marked := o.DeepCopy()
	metadata := marked.Object["metadata"].(map[string]any)
	if metadata["deletionTimestamp"] = s.after(grace); t.name() != namespaces() {
		metadata["deletionGracePeriodSeconds"] = grace
	}
	if o.GetGeneration() > 0 {
		marked.SetGeneration(o.GetGeneration() + 1)
	}
	if s.garbage != nil && t.name() == namespaces() {
		terminate(marked)
	}
	marked = s.commit(t, store.Modified, marked)
	if err := s.empty(t, marked); err != nil {
		return marked, err
	}
	s.byItself(func() { s.remaining(t, marked) })
	return marked, nil
}

// meets returns why an object does not meet the preconditions of a deletion, or nil.
func meets(t *table, o *unstructured.Unstructured, must *metav1.Preconditions) error {
	kind := schema.GroupResource{Group: t.group, Resource: t.kind} // a real server names the kind here
	switch {
	case must == nil:
	case must.UID != nil && *must.UID != o.GetUID():
		return apierrors.NewConflict(kind, o.GetName(), fmt.Errorf(
			"the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *must.UID, o.GetUID()))
	case must.ResourceVersion != nil && *must.ResourceVersion != o.GetResourceVersion():
		return apierrors.NewConflict(kind, o.GetName(), fmt.Errorf(
			"the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *must.ResourceVersion, o.GetResourceVersion()))
	}
	return nil
}

// contains reports whether objects must be deleted before this one: those of a namespace or of a CRD.
func (s *Server) contains(t *table, o *unstructured.Unstructured) bool {
	for _, other := range s.tables {
		if other.stored == nil && holds(t, o, other) && len(other.objects.In(inside(t, o))) > 0 {
			return true
		}
	}
	return false
}

// holds reports whether objects of another table may be in a namespace or of a CRD.
func holds(t *table, o *unstructured.Unstructured, other *table) bool {
	switch t.name() {
	case namespaces():
		return other.namespaced
	case crds():
		return other.custom && other.name().String() == o.GetName()
	}
	return false
}

// inside is the namespace of the objects that are in a namespace or of a CRD; empty means all.
func inside(t *table, o *unstructured.Unstructured) string {
	if t.name() == crds() {
		return ""
	}
	return o.GetName()
}

// content is an object with its table.
type content struct {
	table  *table
	object *unstructured.Unstructured
}

func (s *Server) contents(t *table, o *unstructured.Unstructured) []content {
	var out []content
	for _, other := range s.sorted() {
		if other.stored != nil || !holds(t, o, other) { // another table has the objects of the former
			continue
		}
		for _, row := range other.objects.In(inside(t, o)) {
			out = append(out, content{other, row.Tree()})
		}
	}
	slices.SortStableFunc(out, func(a, b content) int {
		return slices.Compare([]string{a.object.GetNamespace(), a.object.GetName()}, []string{b.object.GetNamespace(), b.object.GetName()})
	})
	return out
}

// empty deletes the objects of a namespace or a CRD.
func (s *Server) empty(t *table, o *unstructured.Unstructured) (err error) {
	s.byItself(func() {
		for _, c := range s.contents(t, o) {
			policy := metav1.DeletePropagationBackground
			if _, err = s.delete(c.table, c.object, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
				return
			}
		}
	})
	return err
}

// lag is how long a real server's controllers take to notice that a namespace or a CRD is empty.
const lag = time.Second

// sweepLater removes, after a while, namespaces and CRDs that are empty by then, so that their end is seen after
// that of their objects.
func (s *Server) sweepLater() {
	if len(s.emptied()) > 0 {
		s.later(lag, func() {
			s.mu.Lock()
			defer s.unlock()
			s.byItself(s.sweep)
		})
	}
}

// emptied returns the namespaces and CRDs that are being deleted and have become empty.
func (s *Server) emptied() []content {
	var out []content
	for _, name := range []schema.GroupResource{namespaces(), crds()} {
		t := s.tables[name]
		for _, o := range t.selected("", everything()) {
			if o.GetDeletionTimestamp() != nil && isToFinish(o) && !s.contains(t, o) {
				out = append(out, content{t, o})
			}
		}
	}
	return out
}

// isToFinish reports whether the server itself ends a namespace or a CRD that is being deleted, once it is empty.
func isToFinish(o *unstructured.Unstructured) bool {
	held := heldBy(o)
	return slices.Contains(held, string(corev1.FinalizerKubernetes)) || slices.Contains(o.GetFinalizers(), cleanup) ||
		len(held) == 0 && len(o.GetFinalizers()) == 0
}

func (s *Server) sweep() {
	for _, c := range s.emptied() {
		s.finish(c)
	}
	s.unserve()
}

// unserve forgets resources whose CRD is gone.
func (s *Server) unserve() {
	if s.dry {
		return
	}
	for name, t := range s.tables {
		if t.custom && s.crdOf(t) == nil {
			t.cut()
			delete(s.tables, name)
			s.acceptLater(name.Group)
		}
	}
}
