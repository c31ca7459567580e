// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// isIn reports whether an object is in all scopes of a quota. Only Pods are in any.
func (u *use) isIn(quota *corev1.ResourceQuota) bool {
	var scopes []corev1.ScopedResourceSelectorRequirement
	for _, scope := range quota.Spec.Scopes {
		scopes = append(scopes, corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists})
	}
	if quota.Spec.ScopeSelector != nil {
		scopes = append(scopes, quota.Spec.ScopeSelector.MatchExpressions...)
	}
	return !slices.ContainsFunc(scopes, func(scope corev1.ScopedResourceSelectorRequirement) bool {
		return u.of == nil || !isInScope(u.of, scope)
	})
}

// isInScope reports whether a Pod is in a scope.
func isInScope(pod *corev1.Pod, scope corev1.ScopedResourceSelectorRequirement) bool {
	ends := pod.Spec.ActiveDeadlineSeconds != nil && *pod.Spec.ActiveDeadlineSeconds >= 0
	bestEffort := pod.Status.QOSClass == corev1.PodQOSBestEffort
	switch scope.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return ends
	case corev1.ResourceQuotaScopeNotTerminating:
		return !ends
	case corev1.ResourceQuotaScopeBestEffort:
		return bestEffort
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !bestEffort
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return reachesNamespaces(pod.Spec.Affinity)
	case corev1.ResourceQuotaScopePriorityClass:
		return isOfClass(pod.Spec.PriorityClassName, scope)
	}
	return false
}

// isOfClass reports whether a scope has a PriorityClass.
func isOfClass(class string, scope corev1.ScopedResourceSelectorRequirement) bool {
	switch scope.Operator {
	case corev1.ScopeSelectorOpExists:
		return class != ""
	case corev1.ScopeSelectorOpDoesNotExist:
		return class == ""
	case corev1.ScopeSelectorOpIn:
		return class != "" && slices.Contains(scope.Values, class)
	}
	return !slices.Contains(scope.Values, class)
}

// reachesNamespaces reports whether the affinity of a Pod is about the Pods of other namespaces.
func reachesNamespaces(a *corev1.Affinity) bool {
	if a == nil {
		return false
	}
	var terms []corev1.PodAffinityTerm
	var weighted []corev1.WeightedPodAffinityTerm
	if p := a.PodAffinity; p != nil {
		terms, weighted = p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution
	}
	if p := a.PodAntiAffinity; p != nil {
		terms = slices.Concat(terms, p.RequiredDuringSchedulingIgnoredDuringExecution)
		weighted = slices.Concat(weighted, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	for _, w := range weighted {
		terms = append(terms, w.PodAffinityTerm)
	}
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return len(t.Namespaces) > 0 || t.NamespaceSelector != nil })
}
