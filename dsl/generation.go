// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// SetsObservedGeneration reports whether the engine sets status.observedGeneration of the objects, if their CRD has the
// field. It does so if the operator writes the status anyway: if the field is in its own schema, if the engine sets the
// condition [Ready], or if a handler needs the right to patch the status. Other objects are another controller's.
func (r *Resource) SetsObservedGeneration() bool {
	if r.Cache == CacheMetadata || BuiltIn(r.Name.Group) || len(r.handlers) == 0 {
		return false
	}
	return r.KeepsReady() || r.declaresGeneration() || slices.ContainsFunc(r.handlers, (*Handler).patchesStatus)
}

// declaresGeneration reports whether the resource's own schema has status.observedGeneration.
func (r *Resource) declaresGeneration() bool {
	versions, _, _ := unstructured.NestedFieldNoCopy(r.CRD, "spec", "versions")
	return slices.ContainsFunc(plain.Maps(versions), func(version map[string]any) bool {
		_, has := Path{"schema", "openAPIV3Schema", "properties", "status", "properties", "observedGeneration"}.In(version)
		return has
	})
}

// patchesStatus reports whether the handler needs the right to patch the status of its object. Conditions that are
// only offered do not count.
func (h *Handler) patchesStatus() bool {
	return slices.ContainsFunc(h.Needs, func(n Need) bool {
		self := n.Resource == ResourceName{} && n.Kind.Empty() && n.Child == "" && n.Relation == ""
		return self && n.Subresource == "status" && !n.Offered && slices.Contains(n.Verbs, "patch")
	})
}
