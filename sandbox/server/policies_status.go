// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/url"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func validatingPolicies() schema.GroupResource {
	return schema.GroupResource{Group: admissionv1.GroupName, Resource: "validatingadmissionpolicies"}
}

// observeLater plans a look at the policies whose status is older than their spec, after a write to one.
func (s *Server) observeLater(t *table) {
	if s.garbage == nil || s.garbage.observes || t.name() != validatingPolicies() {
		return
	}
	s.garbage.observes = true
	s.later(collectLag, func() {
		s.mu.Lock()
		defer s.unlock()
		s.garbage.observes = false
		s.byItself(s.observePolicies)
	})
}

// observePolicies writes the status of policies, as the controller of a real cluster does, which also checks the types of expressions.
func (s *Server) observePolicies() {
	t := s.tables[validatingPolicies()]
	for _, row := range t.objects.In("") {
		o := row.Tree()
		if observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration"); observed >= o.GetGeneration() {
			continue
		}
		body := map[string]any{
			"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "metadata": map[string]any{"name": o.GetName()},
			"status": map[string]any{"observedGeneration": o.GetGeneration(), "typeChecking": map[string]any{}},
		}
		_, _ = s.patch(t, Request{
			Verb: "patch", Resource: validatingPolicies().WithVersion(t.versions[0]), Subresource: "status", Name: o.GetName(), Body: body,
			contentType: string(types.ApplyPatchType),
			options:     url.Values{"fieldManager": {"validatingadmissionpolicy-status"}, "force": {"true"}},
		}, o) // it has nothing that could be refused
	}
}
