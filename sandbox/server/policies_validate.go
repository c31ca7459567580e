// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"github.com/handwerk-dev/handwerk/sandbox/server/policy"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// seenByPolicies reports whether policies are asked about a request. They are not about the server's own ones, nor about objects for
// admission.
func seenByPolicies(t *table, r Request) bool {
	return r.reply != nil && t.group != admissionv1.GroupName
}

// validates reports whether policies may deny a request.
func (s *Server) validates(t *table, r Request) bool {
	return seenByPolicies(t, r) && len(s.admitted().validating) > 0
}

// validated returns the error of validating policies that deny a request, or nil. It warns the client as their bindings say.
func (s *Server) validated(t *table, r Request, about subject) error {
	if !s.validates(t, r) {
		return nil
	}
	ctx, call := r.reply.request.Context(), s.callOf(t, r, about)
	var verdict policy.Verdict
	for _, each := range s.admitted().validating {
		p := each.policy
		match := p.Matches(call)
		if match.Err == nil && match.Matches {
			match.Err = s.knowsParams(p)
		}
		if match.Err != nil {
			p.Misconfigured(&verdict, nil, match.Err)
			continue
		} else if !match.Matches {
			continue
		}
		in := t.objectsIn(match.Version, about)
		for _, b := range each.bindings {
			params, err := s.paramsFor(p, b, call)
			if err != nil {
				p.Misconfigured(&verdict, b, err)
			}
			for _, param := range params {
				if p.Validate(ctx, &verdict, call, in, b, param) {
					s.decided(p.Name)
				}
			}
		}
	}
	r.reply.warn(verdict.Warnings...)
	return verdict.Refusal(call)
}

// parametrized is a policy of either kind.
type parametrized interface {
	Param() (kind schema.GroupVersionKind, has bool, err error)
}

// knowsParams returns the error of a policy whose kind of parameters is not served, or nil.
func (s *Server) knowsParams(p parametrized) error {
	kind, has, err := p.Param()
	if err != nil || !has {
		return err
	}
	if _, err := s.tableOf(kind); err != nil {
		return policy.UnknownKind(kind)
	}
	return nil
}

// paramsFor returns the parameters with which a binding of a policy sees a call: one that is nil if it uses none, and none if the
// binding does not see the call. The kind of the parameters is served.
func (s *Server) paramsFor(p parametrized, b *policy.Binding, call *policy.Call) ([]runtime.Object, error) {
	if match := b.Matches(call); match.Err != nil || !match.Matches {
		return nil, match.Err
	}
	kind, has, err := p.Param()
	if err != nil || !has || b.Param == nil {
		return []runtime.Object{nil}, err
	}
	t, err := s.tableOf(kind)
	if err != nil {
		return nil, err
	}
	query, _, err := b.Query(call.Namespace, t.namespaced)
	if err != nil {
		return nil, err
	}
	var out []runtime.Object
	if query.Name != "" {
		if o := t.get(types.NamespacedName{Namespace: query.Namespace, Name: query.Name}); o != nil {
			out = append(out, t.inVersion(o, kind.Version))
		}
		return b.Found(out)
	}
	for _, row := range t.objects.In(query.Namespace) {
		if o := row.Tree(); query.Selector.Matches(labels.Set(o.GetLabels())) {
			out = append(out, t.inVersion(o, kind.Version))
		}
	}
	return b.Found(out)
}
