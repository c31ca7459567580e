// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"slices"
	"strings"

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

// Named finds the resources that kubectl would take a name for: a plural, a singular, a short name, or a plural with its
// group. Several groups may have a resource of one name; the core group comes first, and then those of Kubernetes.
func (s *Server) Named(name string) (out []Served) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, custom := range []bool{false, true} {
		for _, t := range s.sorted() {
			if t.custom == custom && t.isServed() && t.goesBy(name) {
				out = append(out, t.served(t.versions[0]))
			}
		}
	}
	return out
}

// All returns all resources in their preferred versions, in the order of [Server.Named].
func (s *Server) All() (out []Served) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, custom := range []bool{false, true} {
		for _, t := range s.sorted() {
			if t.custom == custom && t.isServed() {
				out = append(out, t.served(t.versions[0]))
			}
		}
	}
	return out
}

// goesBy reports whether a name is one of the resource's.
func (t *table) goesBy(name string) bool {
	plural, group, found := strings.Cut(name, ".")
	if found {
		return plural == t.plural && group == t.group
	}
	return name == t.plural || name == t.singular || slices.Contains(t.short, name)
}

func (t *table) served(version string) Served {
	return Served{
		GVR:  schema.GroupVersionResource{Group: t.group, Version: version, Resource: t.plural},
		Kind: t.kind, Namespaced: t.namespaced, Status: t.status,
	}
}

func (s *Server) lookup(version string, wanted func(*table) bool) (Served, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tables {
		if !wanted(t) || len(t.versions) == 0 || version != "" && !slices.Contains(t.versions, version) {
			continue
		}
		if version == "" {
			version = t.versions[0]
		}
		return t.served(version), true
	}
	return Served{}, false
}
