// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ExceptNamespaces has the webhooks of a configuration, or a policy, leave out requests for objects in some namespaces, and for these
// Namespaces themselves. An operator leaves out kube-system and its own namespace: else a webhook without a process could keep the
// process from starting. The object is changed; fields of other objects are not. A namespaceSelector has no effect on
// other objects without a namespace.
func ExceptNamespaces(o *unstructured.Unstructured, namespaces ...string) {
	names := slices.Clone(namespaces)
	slices.Sort(names)
	values := []any{}
	for _, name := range slices.Compact(names) {
		if name != "" {
			values = append(values, name)
		}
	}
	if len(values) == 0 {
		return
	}
	webhooks, _ := o.Object["webhooks"].([]any)
	for _, each := range webhooks {
		if fields, is := each.(map[string]any); is {
			leaveOut(fields, values)
		}
	}
	spec, _ := o.Object["spec"].(map[string]any)
	if constraints, is := spec["matchConstraints"].(map[string]any); is {
		leaveOut(constraints, values)
	}
}

// leaveOut adds to the namespaceSelector of some fields that the namespaces have other names.
func leaveOut(fields map[string]any, namespaces []any) {
	selector, is := fields["namespaceSelector"].(map[string]any)
	if !is {
		selector = map[string]any{}
		fields["namespaceSelector"] = selector
	}
	expression := map[string]any{"key": corev1.LabelMetadataName, "operator": "NotIn", "values": namespaces}
	all, _ := selector["matchExpressions"].([]any)
	if !slices.ContainsFunc(all, func(e any) bool { return contains(e, expression) }) {
		selector["matchExpressions"] = append(all, expression)
	}
}

// ways are the fields of a client config that say how to reach a webhook. A CRD may have one of them.
var ways = []string{"url", "service"}

// Conversion returns the part of a CRD that has a webhook convert its objects, for the list of [Keeper.Set]. The client config is that of
// the CRD: url or service, and caBundle. The keeper applies it when the CRD exists, and neither creates nor deletes CRDs. If it is
// not wanted any more, the CRD keeps it.
func Conversion(crd string, clientConfig map[string]any) *unstructured.Unstructured {
	client := maps.Clone(clientConfig)
	for _, way := range ways {
		if _, has := client[way]; !has {
			client[way] = nil // the CRD may have another way
		}
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": crdKind,
		"spec": map[string]any{"conversion": map[string]any{
			"strategy": "Webhook",
			"webhook":  map[string]any{"clientConfig": client, "conversionReviewVersions": []any{"v1"}},
		}},
	}}
	o.SetName(crd)
	return o
}
