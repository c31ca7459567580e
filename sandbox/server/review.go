// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"maps"
	"strings"

	"github.com/handwerk-dev/handwerk/sandbox/server/rbac"
	discoveryv2 "k8s.io/api/apidiscovery/v2"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// consult answers a review of a server with users, or the request of a token. It reports whether the request is one of these.
func (s *Server) consult(r Request) (out any, found bool, err error) {
	var answer func(Request, *unstructured.Unstructured) (any, error)
	group, kind := r.Resource.Group, ""
	switch r.Resource.Group + "/" + r.Resource.Resource + "/" + r.Subresource {
	case "authorization.k8s.io/selfsubjectaccessreviews/":
		kind, answer = "SelfSubjectAccessReview", s.judge
	case "authorization.k8s.io/subjectaccessreviews/":
		kind, answer = "SubjectAccessReview", s.judge
	case "authorization.k8s.io/localsubjectaccessreviews/":
		kind, answer = "LocalSubjectAccessReview", s.judge
	case "authorization.k8s.io/selfsubjectrulesreviews/":
		kind, answer = "SelfSubjectRulesReview", s.rules
	case "authentication.k8s.io/selfsubjectreviews/":
		kind, answer = "SelfSubjectReview", s.whoami
	case "authentication.k8s.io/tokenreviews/":
		kind, answer = "TokenReview", s.authenticate
	case "/serviceaccounts/token":
		group, kind, answer = authenticationv1.GroupName, "TokenRequest", s.issue
	default:
		return nil, false, nil
	}
	if r.Verb != "create" {
		return nil, true, notAllowed()
	}
	if err := s.permit(r.attributes()); err != nil {
		return nil, true, err
	}
	sent, err := r.object(&table{resource: resource{group: group, kind: kind}})
	if err == nil {
		out, err = answer(r, sent)
	}
	return out, true, err
}

// reviewGroups are the groups that have only reviews.
func reviewGroups() []discoveryv2.APIGroupDiscovery {
	group := func(name string, kinds ...string) discoveryv2.APIGroupDiscovery {
		version := discoveryv2.APIVersionDiscovery{Version: "v1", Freshness: discoveryv2.DiscoveryFreshnessCurrent}
		for _, kind := range kinds {
			scope := discoveryv2.ScopeCluster
			if strings.HasPrefix(kind, "Local") {
				scope = discoveryv2.ScopeNamespace
			}
			version.Resources = append(version.Resources, discoveryv2.APIResourceDiscovery{
				Resource: strings.ToLower(kind) + "s", SingularResource: strings.ToLower(kind), Scope: scope, Verbs: []string{"create"},
				ResponseKind: &metav1.GroupVersionKind{Group: name, Version: "v1", Kind: kind},
			})
		}
		return discoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}, Versions: []discoveryv2.APIVersionDiscovery{version}}
	}
	return []discoveryv2.APIGroupDiscovery{
		group("authentication.k8s.io", "SelfSubjectReview", "TokenReview"),
		group("authorization.k8s.io", "LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"),
	}
}

// answered returns a review with a status.
func answered(review *unstructured.Unstructured, status any) (any, error) {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	out := maps.Clone(review.Object)
	out["status"] = tree
	return out, nil
}

// manageReview replaces the metadata of a review by the manager of its fields.
func (s *Server) manageReview(r Request, review *unstructured.Unstructured) {
	review.Object["metadata"] = map[string]any{}
	kind := review.GroupVersionKind()
	t := &table{resource: resource{group: kind.Group, kind: kind.Kind, versions: []string{kind.Version}}}
	blank := t.blank(kind)
	blank.Object["spec"] = map[string]any{"boundObjectRef": nil} // which the request of a token has in any case
	s.owners.managing(t, r).note(r, blank, review)
}

// judge answers the reviews of access: for the sender, or for the user in the review.
func (s *Server) judge(r Request, sent *unstructured.Unstructured) (any, error) {
	var review authorizationv1.SubjectAccessReview
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(sent.Object, &review); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	self := r.Resource.Resource == "selfsubjectaccessreviews"
	if errs := asks(&review.Spec, self, r.Namespace); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: r.Resource.Group}, "", errs)
	}
	ask := rbac.Attributes{User: rbac.User{Name: review.Spec.User, UID: review.Spec.UID, Groups: review.Spec.Groups}}
	if self {
		ask.User = r.user
	}
	if a := review.Spec.ResourceAttributes; a != nil {
		ask.Verb, ask.Namespace, ask.Group, ask.Resource, ask.Subresource, ask.Name = a.Verb, a.Namespace, a.Group, a.Resource, a.Subresource, a.Name
	} else if a := review.Spec.NonResourceAttributes; a != nil {
		ask.Verb, ask.Path = a.Verb, a.Path
	}
	s.manageReview(r, sent)
	if r.Namespace != "" {
		sent.SetNamespace(r.Namespace)
	}
	said := s.rights().Decide(ask)
	return answered(sent, &authorizationv1.SubjectAccessReviewStatus{Allowed: said.Allowed, Reason: said.Reason})
}

// asks returns what is wrong with the question of a review of access. The namespace is that of a local one.
func asks(spec *authorizationv1.SubjectAccessReviewSpec, self bool, namespace string) (out field.ErrorList) {
	path := field.NewPath("spec")
	if (spec.ResourceAttributes == nil) == (spec.NonResourceAttributes == nil) {
		var of *struct{ Path, Verb string } // the form of a real server
		if a := spec.NonResourceAttributes; a != nil {
			of = &struct{ Path, Verb string }{a.Path, a.Verb}
		}
		out = append(out, field.Invalid(path, of, "exactly one of nonResourceAttributes or resourceAttributes must be specified"))
	}
	if !self && spec.User == "" && len(spec.Groups) == 0 {
		out = append(out, field.Invalid(path.Child("user"), spec.User, "at least one of user or group must be specified"))
	}
	switch {
	case namespace == "":
	case spec.NonResourceAttributes != nil:
		out = append(out, field.Invalid(path.Child("nonResourceAttributes"), spec.NonResourceAttributes, "disallowed on this kind of request"))
	case spec.ResourceAttributes != nil && spec.ResourceAttributes.Namespace != namespace:
		out = append(out, field.Invalid(path.Child("resourceAttributes", "namespace"), spec.ResourceAttributes.Namespace, "must match metadata.namespace"))
	}
	return out
}

// rules answers a review of all rights of the sender in a namespace. Like a real server, it does not repeat the question.
func (s *Server) rules(r Request, sent *unstructured.Unstructured) (any, error) {
	var review authorizationv1.SelfSubjectRulesReview
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(sent.Object, &review); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if review.Spec.Namespace == "" {
		return nil, apierrors.NewBadRequest("no namespace on request")
	}
	out := authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{}}
	for _, rule := range s.rights().RulesFor(r.user, review.Spec.Namespace) {
		if len(rule.NonResourceURLs) > 0 {
			out.NonResourceRules = append(out.NonResourceRules, authorizationv1.NonResourceRule{Verbs: rule.Verbs, NonResourceURLs: rule.NonResourceURLs})
			continue
		}
		out.ResourceRules = append(out.ResourceRules, authorizationv1.ResourceRule{
			Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames,
		})
	}
	sent.Object["metadata"], sent.Object["spec"] = map[string]any{}, map[string]any{}
	return answered(sent, &out)
}

// whoami answers a review of the sender.
func (s *Server) whoami(r Request, sent *unstructured.Unstructured) (any, error) {
	sent.Object["metadata"] = map[string]any{"creationTimestamp": s.now()}
	return answered(sent, &authenticationv1.SelfSubjectReviewStatus{UserInfo: userInfo(r.user)})
}
