// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"slices"

	discoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func bindings() schema.GroupResource { return schema.GroupResource{Resource: "bindings"} }

func componentStatuses() schema.GroupResource {
	return schema.GroupResource{Resource: "componentstatuses"}
}

// unstored are the resources of the core group without objects that are stored.
func unstored() []discoveryv2.APIResourceDiscovery {
	kind := func(name string) *metav1.GroupVersionKind { return &metav1.GroupVersionKind{Kind: name} }
	return []discoveryv2.APIResourceDiscovery{
		{Resource: "bindings", SingularResource: "binding", ResponseKind: kind("Binding"), Scope: discoveryv2.ScopeNamespace, Verbs: []string{"create"}},
		{
			Resource: "componentstatuses", SingularResource: "componentstatus", ResponseKind: kind("ComponentStatus"), ShortNames: []string{"cs"},
			Scope: discoveryv2.ScopeCluster, Verbs: []string{"get", "list"},
		},
	}
}

// toPod returns the request of a binding as one for the Pod that it names.
func (r Request) toPod() Request {
	binding := &unstructured.Unstructured{Object: r.Body}
	r.Resource.Resource, r.Subresource, r.Name = "pods", "binding", binding.GetName()
	return r
}

// components answers a read of the parts of the cluster, which all are well while the server answers.
func (r Request) components() (any, error) {
	r.reply.warn("v1 ComponentStatus is deprecated in v1.19+")
	component := func(name string) map[string]any {
		return map[string]any{
			"metadata":   map[string]any{"name": name},
			"conditions": []any{map[string]any{"type": "Healthy", "status": "True", "message": "ok"}},
		}
	}
	names := []string{"scheduler", "controller-manager", "etcd-0"}
	switch {
	case r.Verb == "list":
		items := make([]any, 0, len(names))
		for _, name := range names {
			items = append(items, component(name))
		}
		return map[string]any{"kind": "ComponentStatusList", "apiVersion": "v1", "metadata": map[string]any{}, "items": items}, nil
	case r.Verb != "get":
		return nil, notAllowed()
	case !slices.Contains(names, r.Name):
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "componentstatus"}, r.Name) // as a real server names it
	}
	out := component(r.Name)
	out["kind"], out["apiVersion"] = "ComponentStatus", "v1"
	return out, nil
}
