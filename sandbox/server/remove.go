// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// remove answers a deletion: with the object while something holds it, otherwise with a status.
func (s *Server) remove(t *table, r Request) (any, error) {
	if s.schemas != nil && t.name() == namespaces() && stays(r.Name) {
		return nil, apierrors.NewForbidden(t.name(), r.Name, errors.New("this namespace may not be deleted"))
	}
	old := t.get(types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
	if old == nil {
		return nil, apierrors.NewNotFound(t.name(), r.Name)
	}
	options, err := r.deletion()
	if err != nil {
		return nil, err
	}
	marked, err := s.delete(t, old, options)
	switch {
	case err != nil:
		return nil, err
	case marked != nil:
		return present(t, r, marked), nil
	case t.returnsDeleted():
		return present(t, r, s.last(t, old)), nil
	}
	return removed(t, old), nil
}

// stays reports whether a namespace belongs to the cluster itself.
func stays(namespace string) bool {
	return namespace == metav1.NamespaceDefault || namespace == metav1.NamespaceSystem || namespace == metav1.NamespacePublic
}

// last returns an object as the answer to its deletion has it when it is gone.
func (s *Server) last(t *table, o *unstructured.Unstructured) *unstructured.Unstructured {
	if s.dry {
		return o
	}
	out := o.DeepCopy()
	out.SetResourceVersion(strconv.FormatInt(s.version, 10))
	if t.group == "" && t.plural == "pods" { // it had a grace period of no length
		metadata := out.Object["metadata"].(map[string]any)
		metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"] = now(), int64(0)
		out.SetGeneration(o.GetGeneration() + 1)
	}
	return out
}

// removed returns the answer for an object that is gone.
func removed(t *table, o *unstructured.Unstructured) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: o.GetName(), Group: t.group, Kind: t.plural, UID: o.GetUID()},
	}
}

// returnsDeleted reports whether the answer to a deletion is the object even if it is gone.
func (t *table) returnsDeleted() bool {
	switch t.group + "/" + t.plural {
	case "/namespaces", "/persistentvolumeclaims", "/persistentvolumes", "/pods", "/podtemplates", "/resourcequotas",
		"/serviceaccounts", "/services", "storage.k8s.io/storageclasses":
		return true
	}
	return false
}

// clear answers a deletion of all selected objects with their list.
func (s *Server) clear(t *table, r Request) (any, error) {
	sel, err := selectorOf(t, r)
	if err != nil {
		return nil, err
	}
	options, err := r.deletion()
	if err != nil {
		return nil, err
	}
	rows := t.chosen(t.objects.In(r.Namespace), sel)
	out := s.newListing(t, r, page{rows: rows, version: s.version})
	for _, row := range rows {
		// The deletion of an object before may have removed this one, too.
		if o := t.get(types.NamespacedName{Namespace: row.Namespace, Name: row.Name}); o != nil {
			if _, err := s.delete(t, o, options); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
