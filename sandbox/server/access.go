// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Rule takes a right away.
type Rule struct {
	// Verb is a verb of RBAC; "*" means all.
	Verb string
	// Resource and Subresource are those of the right.
	Resource    schema.GroupResource
	Subresource string
	// Namespace limits the rule to one namespace. Empty means everywhere.
	Namespace string
}

func (r Rule) covers(verb string, resource schema.GroupResource, subresource, namespace string) bool {
	// A client that lacks a right in one namespace does not have it in all namespaces.
	in := r.Namespace == "" || namespace == "" || r.Namespace == namespace
	return in && (r.Verb == "*" || r.Verb == verb) && r.Resource == resource && r.Subresource == subresource
}

// Forbid takes a right from every client except those of Admin. Open watches continue.
func (s *Server) Forbid(r Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied = append(s.denied, r)
}

// Allow reverts Forbid with the same rule.
func (s *Server) Allow(r Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied = slices.DeleteFunc(s.denied, func(d Rule) bool { return d == r })
}

func (s *Server) allowed(verb string, resource schema.GroupResource, subresource, namespace string) bool {
	return !slices.ContainsFunc(s.denied, func(d Rule) bool { return d.covers(verb, resource, subresource, namespace) })
}

func (s *Server) authorize(r Request) error {
	if s.allowed(r.Verb, r.Resource.GroupResource(), r.Subresource, r.Namespace) {
		return nil
	}
	ask := r.attributes()
	ask.User.Name, ask.Namespace = onlyUser, r.Namespace
	return forbidden(r.Resource.GroupResource(), r.Name, refusalOf(ask))
}

func forbidden(resource schema.GroupResource, name, why string) *apierrors.StatusError {
	return apierrors.NewForbidden(resource, name, errors.New(why))
}

func reviews() schema.GroupResource {
	return schema.GroupResource{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"}
}

func rulesReviews() schema.GroupResource {
	return schema.GroupResource{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"}
}

// entitle answers a review of all rights: without users everybody may do everything, but for what [Server.Forbid] takes away.
func entitle(r Request) (any, error) {
	out := maps.Clone(r.Body)
	if out == nil {
		return nil, apierrors.NewBadRequest("a review is required")
	}
	all := []any{"*"}
	out["status"] = map[string]any{"incomplete": false, "nonResourceRules": []any{}, "resourceRules": []any{map[string]any{"verbs": all, "apiGroups": all, "resources": all}}}
	return out, nil
}

func introductions() schema.GroupResource {
	return schema.GroupResource{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"}
}

// introduce answers a SelfSubjectReview.
func introduce(r Request) (any, error) {
	out := maps.Clone(r.Body)
	if out == nil {
		return nil, apierrors.NewBadRequest("a review is required")
	}
	out["status"] = map[string]any{"userInfo": map[string]any{"username": onlyUser}}
	return out, nil
}

// review answers an access review.
func (s *Server) review(r Request) (any, error) {
	asked, _, _ := unstructured.NestedMap(r.Body, "spec", "resourceAttributes")
	text := func(key string) string {
		value, _ := asked[key].(string)
		return value
	}
	resource := schema.GroupResource{Group: text("group"), Resource: text("resource")}
	out := maps.Clone(r.Body)
	if out == nil {
		return nil, apierrors.NewBadRequest("a review is required")
	}
	out["status"] = map[string]any{"allowed": s.allowed(text("verb"), resource, text("subresource"), text("namespace"))}
	return out, nil
}
