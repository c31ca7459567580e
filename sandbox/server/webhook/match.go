// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"slices"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Attributes are what webhooks are told of a request.
type Attributes struct {
	Operation   registrationv1.OperationType
	Kind        schema.GroupVersionKind
	Resource    schema.GroupVersionResource
	Subresource string
	// RequestVersion is the version of the request. Kind, Resource and the objects may be in another one of Versions, which are all of the
	// resource.
	RequestVersion string
	Versions       []string
	// Namespaced: the resource is. NamespaceLabels are those of the namespace, also of one that is written itself.
	Namespaced      bool
	Namespace, Name string
	NamespaceLabels map[string]string
	User            authenticationv1.UserInfo
	DryRun          bool
	// Object is what is to be stored, and Old what is; each may be nil.
	Object, Old map[string]any
}

// Matches reports whether a webhook wants to see a request, and in which version.
func (h Hook) Matches(a Attributes) (version string, found bool) {
	if version, found = h.versionFor(a); !found {
		return "", false
	}
	if (a.Namespaced || a.NamespaceLabels != nil) && !selects(h.NamespaceSelector, a.NamespaceLabels) {
		return "", false
	}
	return version, selects(h.ObjectSelector, labelsOf(a.Object)) || a.Old != nil && selects(h.ObjectSelector, labelsOf(a.Old))
}

// versionFor returns the version of the resource that the rules have. That of the request comes first. Others count if the webhook
// takes equivalent requests.
func (h Hook) versionFor(a Attributes) (string, bool) {
	if slices.ContainsFunc(h.Rules, func(r registrationv1.RuleWithOperations) bool { return covers(r, a, a.RequestVersion) }) {
		return a.RequestVersion, true
	}
	if h.MatchPolicy != nil && *h.MatchPolicy != registrationv1.Equivalent {
		return "", false
	}
	for _, r := range h.Rules {
		if i := slices.IndexFunc(a.Versions, func(version string) bool { return covers(r, a, version) }); i >= 0 {
			return a.Versions[i], true
		}
	}
	return "", false
}

// covers reports whether a rule has a request in a version of its resource.
func covers(r registrationv1.RuleWithOperations, a Attributes, version string) bool {
	return has(r.Operations, a.Operation) && has(r.APIGroups, a.Resource.Group) && has(r.APIVersions, version) &&
		hasScope(r.Scope, a.Namespaced) && hasResource(r.Resources, a)
}

func has[T ~string](list []T, value T) bool {
	return slices.Contains(list, "*") || slices.Contains(list, value)
}

func hasScope(scope *registrationv1.ScopeType, namespaced bool) bool {
	if scope == nil || *scope == registrationv1.AllScopes {
		return true
	}
	return (*scope == registrationv1.NamespacedScope) == namespaced
}

// hasResource reports whether a list such as pods, pods/*, */scale or */* has a resource or its subresource.
func hasResource(list []string, a Attributes) bool {
	if a.Subresource == "" {
		return has(list, a.Resource.Resource) || slices.Contains(list, "*/*") || slices.Contains(list, a.Resource.Resource+"/*")
	}
	for _, each := range []string{"*/*", a.Resource.Resource + "/*", "*/" + a.Subresource, a.Resource.Resource + "/" + a.Subresource} {
		if slices.Contains(list, each) {
			return true
		}
	}
	return false
}

// selects reports whether a selector has labels. One that cannot be read was refused before.
func selects(s *metav1.LabelSelector, set map[string]string) bool {
	if s == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(set))
}

func labelsOf(object map[string]any) map[string]string {
	return (&unstructured.Unstructured{Object: object}).GetLabels()
}
