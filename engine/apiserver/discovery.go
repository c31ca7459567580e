// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"
	"strings"

	discoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// aggregated is the content type of aggregated discovery.
const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// discover answers a discovery request.
func (s *Server) discover(path string) (kind string, body any, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch strings.Trim(path, "/") {
	case "api":
		return aggregated, s.groups(func(group string) bool { return group == "" }), true
	case "apis":
		if s.lagging != nil {
			return aggregated, *s.lagging, true
		}
		return aggregated, s.groups(func(group string) bool { return group != "" }), true
	case "readyz":
		return "text/plain", "ok", true
	case "version":
		return "application/json", map[string]any{"major": "1", "minor": "37", "gitVersion": "v1.37.0"}, true
	}
	return "", nil, false
}

// LagDiscovery freezes discovery at its current state, or ends that.
func (s *Server) LagDiscovery(lag bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lagging = nil
	if lag {
		now := s.groups(func(group string) bool { return group != "" })
		s.lagging = &now
	}
}

func (s *Server) groups(wanted func(string) bool) discoveryv2.APIGroupDiscoveryList {
	out := discoveryv2.APIGroupDiscoveryList{}
	out.Kind, out.APIVersion = "APIGroupDiscoveryList", "apidiscovery.k8s.io/v2"
	for _, t := range s.sorted() {
		if !wanted(t.group) || t.withdrawn {
			continue
		}
		if n := len(out.Items); n == 0 || out.Items[n-1].Name != t.group {
			out.Items = append(out.Items, discoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: t.group}})
		}
		group := &out.Items[len(out.Items)-1]
		for _, version := range t.versions {
			s.describe(group, version, t)
		}
	}
	return out
}

// describe adds a resource to a group's version.
func (s *Server) describe(group *discoveryv2.APIGroupDiscovery, version string, t *table) {
	i := slices.IndexFunc(group.Versions, func(v discoveryv2.APIVersionDiscovery) bool { return v.Version == version })
	if i < 0 {
		i = len(group.Versions)
		group.Versions = append(group.Versions, discoveryv2.APIVersionDiscovery{Version: version, Freshness: discoveryv2.DiscoveryFreshnessCurrent})
	}
	v := &group.Versions[i]
	if s.broken[t.group] {
		v.Freshness = discoveryv2.DiscoveryFreshnessStale
		return
	}
	kind := &metav1.GroupVersionKind{Group: t.group, Version: version, Kind: t.kind}
	r := discoveryv2.APIResourceDiscovery{
		Resource: t.plural, ResponseKind: kind, Scope: discoveryv2.ScopeCluster,
		SingularResource: strings.ToLower(t.kind),
		Verbs:            []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
	}
	if t.namespaced {
		r.Scope = discoveryv2.ScopeNamespace
	}
	if t.status {
		r.Subresources = []discoveryv2.APISubresourceDiscovery{{
			Subresource: "status", ResponseKind: kind, Verbs: []string{"get", "patch", "update"},
		}}
	}
	v.Resources = append(v.Resources, r)
}
