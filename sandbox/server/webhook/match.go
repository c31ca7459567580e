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
	// Namespaced: the resource is. NamespaceLabels are those of the namespace, also of one that is written itself.
	Namespaced      bool
	Namespace, Name string
	NamespaceLabels map[string]string
	User            authenticationv1.UserInfo
	DryRun          bool
	// Object is what is to be stored, and Old what is; each may be nil.
	Object, Old map[string]any
}

// Matches reports whether a webhook wants to see a request.
func (h Hook) Matches(a Attributes) bool {
	if !slices.ContainsFunc(h.Rules, func(r registrationv1.RuleWithOperations) bool { return h.covers(r, a) }) {
		return false
	}
	if (a.Namespaced || a.NamespaceLabels != nil) && !selects(h.NamespaceSelector, a.NamespaceLabels) {
		return false
	}
	return selects(h.ObjectSelector, labelsOf(a.Object)) || a.Old != nil && selects(h.ObjectSelector, labelsOf(a.Old))
}

// covers reports whether a rule has a request. A webhook that takes equivalent requests gets those of all versions.
func (h Hook) covers(r registrationv1.RuleWithOperations, a Attributes) bool {
	equivalent := h.MatchPolicy == nil || *h.MatchPolicy == registrationv1.Equivalent
	return has(r.Operations, a.Operation) && has(r.APIGroups, a.Resource.Group) &&
		(equivalent || has(r.APIVersions, a.Resource.Version)) && hasScope(r.Scope, a.Namespaced) && hasResource(r.Resources, a)
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
