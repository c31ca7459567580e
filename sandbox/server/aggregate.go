// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/url"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func clusterRoles() schema.GroupResource {
	return schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterroles"}
}

// aggregateLater plans a look at the cluster roles that are sums of others, after a write to one.
func (s *Server) aggregateLater(t *table) {
	if s.garbage == nil || s.garbage.sums || t.name() != clusterRoles() {
		return
	}
	s.garbage.sums = true
	s.later(collectLag, func() {
		s.mu.Lock()
		defer s.unlock()
		s.byItself(s.aggregate)
		s.garbage.sums = false
	})
}

// deepestSum is how many sums may be parts of each other.
const deepestSum = 10

// aggregate writes the rules of cluster roles that are sums of others, as the controller of a real cluster does. A sum
// can be a part of another.
func (s *Server) aggregate() {
	for range deepestSum {
		changed, policy := false, s.rights()
		for _, role := range policy.ClusterRoles {
			if role.AggregationRule == nil {
				continue
			}
			if sum := policy.Sum(role); !equality.Semantic.DeepEqual(sum, role.Rules) {
				changed = s.sum(role.Name, sum) || changed
			}
		}
		if !changed {
			return
		}
	}
}

// sum writes the rules of a cluster role, and reports whether that was possible.
func (s *Server) sum(name string, rules []rbacv1.PolicyRule) bool {
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rbacv1.ClusterRole{Rules: rules})
	if err != nil {
		return false
	}
	t := s.tables[clusterRoles()]
	if len(rules) == 0 {
		body["rules"] = []any{}
	}
	body["apiVersion"], body["kind"], body["metadata"] = t.apiVersion(t.versions[0]), t.kind, map[string]any{"name": name}
	_, err = s.patch(t, Request{
		Verb: "patch", Resource: clusterRoles().WithVersion(t.versions[0]), Name: name, Body: body,
		contentType: string(types.ApplyPatchType),
		options:     url.Values{"fieldManager": {"clusterrole-aggregation-controller"}, "force": {"true"}},
	}, t.get(types.NamespacedName{Name: name}))
	return err == nil
}
