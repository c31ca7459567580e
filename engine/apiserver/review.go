// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"maps"
	"strings"
	"time"

	"github.com/handwerk-dev/handwerk/engine/apiserver/rbac"
	discoveryv2 "k8s.io/api/apidiscovery/v2"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// consult answers a review of a server with users, or the request of a token. It reports whether the request is one.
func (s *Server) consult(r Request) (out any, found bool, err error) {
	var answer func(Request) (any, error)
	switch r.Resource.Group + "/" + r.Resource.Resource + "/" + r.Subresource {
	case "authorization.k8s.io/selfsubjectaccessreviews/", "authorization.k8s.io/subjectaccessreviews/", "authorization.k8s.io/localsubjectaccessreviews/":
		answer = s.judge
	case "authorization.k8s.io/selfsubjectrulesreviews/":
		answer = s.rules
	case "authentication.k8s.io/selfsubjectreviews/":
		answer = s.whoami
	case "/serviceaccounts/token":
		answer = s.issue
	default:
		return nil, false, nil
	}
	switch {
	case r.Verb != "create":
		return nil, true, notAllowed()
	case r.Body == nil:
		return nil, true, apierrors.NewBadRequest("a review is required")
	}
	if err := s.permit(r.attributes()); err != nil {
		return nil, true, err
	}
	out, err = answer(r)
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
		group("authentication.k8s.io", "SelfSubjectReview"),
		group("authorization.k8s.io", "LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"),
	}
}

// answered returns a review with a status.
func (r Request) answered(status any) (any, error) {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	out := maps.Clone(r.Body)
	out["status"] = tree
	return out, nil
}

// judge answers the reviews of access: for the sender, or for the user in the review.
func (s *Server) judge(r Request) (any, error) {
	var review authorizationv1.SubjectAccessReview
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(r.Body, &review); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	ask := rbac.Attributes{User: rbac.User{Name: review.Spec.User, UID: review.Spec.UID, Groups: review.Spec.Groups}}
	if r.Resource.Resource == "selfsubjectaccessreviews" {
		ask.User = r.user
	}
	if a := review.Spec.ResourceAttributes; a != nil {
		ask.Verb, ask.Namespace, ask.Group, ask.Resource, ask.Subresource, ask.Name = a.Verb, a.Namespace, a.Group, a.Resource, a.Subresource, a.Name
	} else if a := review.Spec.NonResourceAttributes; a != nil {
		ask.Verb, ask.Path = a.Verb, a.Path
	}
	return r.answered(&authorizationv1.SubjectAccessReviewStatus{Allowed: s.rights().Allows(ask)})
}

// rules answers a review of all rights of the sender in a namespace.
func (s *Server) rules(r Request) (any, error) {
	var review authorizationv1.SelfSubjectRulesReview
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(r.Body, &review); err != nil {
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
	return r.answered(&out)
}

// whoami answers a review of the sender.
func (s *Server) whoami(r Request) (any, error) {
	return r.answered(&authenticationv1.SelfSubjectReviewStatus{
		UserInfo: authenticationv1.UserInfo{Username: r.user.Name, UID: r.user.UID, Groups: r.user.Groups},
	})
}

// usualLife is how long a token is valid if its request does not say so, in seconds.
const usualLife = 3600

// issue answers the request of a ServiceAccount's token.
func (s *Server) issue(r Request) (any, error) {
	account := s.tables[serviceAccounts()].get(types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
	if account == nil {
		return nil, apierrors.NewNotFound(serviceAccounts(), r.Name)
	}
	var request authenticationv1.TokenRequest
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(r.Body, &request); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	life := int64(usualLife)
	if asked := request.Spec.ExpirationSeconds; asked != nil {
		life = *asked
	}
	ends := time.Now().Add(time.Duration(life) * time.Second)
	return r.answered(&authenticationv1.TokenRequestStatus{
		Token:               s.token(rbac.ServiceAccount(r.Namespace, r.Name, string(account.GetUID())), ends),
		ExpirationTimestamp: metav1.NewTime(ends),
	})
}
