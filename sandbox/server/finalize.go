// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// finalize writes the finalizers in the spec of a namespace. If it removes the last one of a namespace that is being deleted,
// the namespace is gone, whatever is in it.
func (s *Server) finalize(t *table, r Request) (any, error) {
	sent, err := r.object(t)
	if err != nil {
		return nil, err
	}
	old := t.get(types.NamespacedName{Name: r.Name})
	if old == nil {
		return nil, apierrors.NewNotFound(t.name(), r.Name)
	}
	o, err := s.update(t, r, old, sent)
	if err != nil {
		return nil, err
	}
	return s.answered(t, r, o), nil
}

// heldBy returns the finalizers in the spec of a namespace. Other objects have none.
func heldBy(o *unstructured.Unstructured) []string {
	if o.GetKind() != "Namespace" {
		return nil
	}
	out, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "finalizers")
	return out
}

// holdBy sets the finalizers in the spec of a namespace.
func holdBy(o *unstructured.Unstructured, finalizers []string) {
	spec := map[string]any{}
	if len(finalizers) > 0 {
		list := make([]any, 0, len(finalizers))
		for _, f := range finalizers {
			list = append(list, f)
		}
		spec["finalizers"] = list
	}
	o.Object["spec"] = spec
}

// ends reports whether an object is gone with a write: it is being deleted, and nothing holds it any more.
func (t *table) ends(o *unstructured.Unstructured) bool {
	if t.name() == namespaces() && len(heldBy(o)) > 0 {
		return false
	}
	return o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && left(o) == 0
}
