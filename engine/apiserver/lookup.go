// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Served is a served resource.
type Served struct {
	GVR        schema.GroupVersionResource
	Kind       string
	Namespaced bool
	// Status: it has a status subresource.
	Status bool
}

// Lookup finds a resource by its plural name. Without a version it returns the preferred one.
func (s *Server) Lookup(gvr schema.GroupVersionResource) (Served, bool) {
	return s.lookup(gvr.Version, func(t *table) bool { return t.name() == gvr.GroupResource() })
}

// LookupKind finds the resource of a kind.
func (s *Server) LookupKind(gvk schema.GroupVersionKind) (Served, bool) {
	return s.lookup(gvk.Version, func(t *table) bool { return t.groupKind() == gvk.GroupKind() })
}

func (s *Server) lookup(version string, wanted func(*table) bool) (Served, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tables {
		if !wanted(t) || version != "" && !slices.Contains(t.versions, version) {
			continue
		}
		if version == "" {
			version = t.versions[0]
		}
		return Served{
			GVR:  schema.GroupVersionResource{Group: t.group, Version: version, Resource: t.plural},
			Kind: t.kind, Namespaced: t.namespaced, Status: t.status,
		}, true
	}
	return Served{}, false
}
