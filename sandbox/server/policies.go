// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"github.com/handwerk-dev/handwerk/sandbox/server/policy"
	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	"github.com/handwerk-dev/handwerk/sandbox/server/webhook"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// admissions are the objects for admission as they are now.
type admissions struct {
	mutating   []active[policy.Mutating]
	validating []active[policy.Validating]
	// mutators and validators are webhooks.
	mutators, validators []hook
}

// active is a policy with its bindings.
type active[P any] struct {
	policy   *P
	bindings []*policy.Binding
}

// hook is a webhook with its match conditions.
type hook struct {
	webhook.Hook
	conditions *policy.Conditions
}

// admitted returns the objects for admission. They are read again after a write to one of them; those that did not change are not
// compiled again. A policy without a binding has no effect.
func (s *Server) admitted() *admissions {
	if s.admissions == nil {
		next := map[*store.Row]any{}
		s.admissions = &admissions{
			mutating: boundOf(
				compiled(s, "mutatingadmissionpolicies", next, policy.NewMutating), compiled(s, "mutatingadmissionpolicybindings", next, policy.NewMutatingBinding),
				func(p *policy.Mutating) string { return p.Name }),
			validating: boundOf(
				compiled(s, "validatingadmissionpolicies", next, policy.NewValidating), compiled(s, "validatingadmissionpolicybindings", next, policy.NewValidatingBinding),
				func(p *policy.Validating) string { return p.Name }),
			mutators: s.hooks("mutatingwebhookconfigurations", next), validators: s.hooks("validatingwebhookconfigurations", next),
		}
		s.compiled = next
	}
	return s.admissions
}

// rowsOf returns the rows of a resource for admission, by their names.
func (s *Server) rowsOf(resource string) []*store.Row {
	t := s.tables[schema.GroupResource{Group: admissionv1.GroupName, Resource: resource}]
	if t == nil {
		return nil
	}
	return t.objects.In("")
}

// compiled returns the objects of a resource in a compiled form. Next keeps these by their rows.
func compiled[From, To any](s *Server, resource string, next map[*store.Row]any, compile func(*From) *To) (out []*To) {
	for _, row := range s.rowsOf(resource) {
		known, is := s.compiled[row].(*To)
		if !is {
			var from From
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(row.Tree().Object, &from); err != nil {
				continue // a server without schemas may have stored anything
			}
			known = compile(&from)
		}
		next[row] = known
		out = append(out, known)
	}
	return out
}

// boundOf returns the policies that have bindings.
func boundOf[P any](policies []*P, bindings []*policy.Binding, name func(*P) string) (out []active[P]) {
	for _, p := range policies {
		one := active[P]{policy: p}
		for _, b := range bindings {
			if b.Policy == name(p) {
				one.bindings = append(one.bindings, b)
			}
		}
		if len(one.bindings) > 0 {
			out = append(out, one)
		}
	}
	return out
}

// hooks returns the webhooks of a resource.
func (s *Server) hooks(resource string, next map[*store.Row]any) (out []hook) {
	for _, row := range s.rowsOf(resource) {
		known, is := s.compiled[row].([]hook)
		if !is {
			hooks, err := webhook.Hooks(row.Tree().Object)
			if err != nil {
				continue
			}
			for _, h := range hooks {
				known = append(known, hook{h, policy.NewConditions(h.MatchConditions, h.FailurePolicy)})
			}
		}
		next[row] = known
		out = append(out, known...)
	}
	return out
}
