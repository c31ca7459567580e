// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// scaling says where the objects of a resource have what their scale subresource shows, as paths of fields.
type scaling struct{ spec, status, selector []string }

// scaleKind is the kind of the scale subresource of every resource.
func scaleKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
}

// builtinScaling returns the paths of a built-in resource, or nil.
func builtinScaling(group, plural string) *scaling {
	switch group + "/" + plural {
	case "apps/deployments", "apps/replicasets", "apps/statefulsets", "/replicationcontrollers":
		return &scaling{[]string{"spec", "replicas"}, []string{"status", "replicas"}, []string{"spec", "selector"}}
	}
	return nil
}

// customScaling returns the paths of a version of a CRD, or nil.
func customScaling(version map[string]any) *scaling {
	paths, found, _ := unstructured.NestedStringMap(version, "subresources", "scale")
	if !found {
		return nil
	}
	fields := func(name string) []string { return strings.Split(strings.TrimPrefix(paths[name], "."), ".") }
	return &scaling{fields("specReplicasPath"), fields("statusReplicasPath"), fields("labelSelectorPath")}
}

// scaleOf returns the scale of an object.
func (t *table) scaleOf(o *unstructured.Unstructured) *unstructured.Unstructured {
	metadata := map[string]any{}
	from, _ := o.Object["metadata"].(map[string]any)
	for _, key := range []string{"name", "namespace", "uid", "resourceVersion", "creationTimestamp"} {
		if value, found := from[key]; found {
			metadata[key] = value
		}
	}
	spec := map[string]any{}
	if wanted := t.replicas(o); wanted != 0 {
		spec["replicas"] = wanted
	}
	current, _, _ := unstructured.NestedInt64(o.Object, t.scale.status...)
	status := map[string]any{"replicas": current}
	if text := selectorText(o, t.scale.selector); text != "" {
		status["selector"] = text
	}
	out := &unstructured.Unstructured{Object: map[string]any{"metadata": metadata, "spec": spec, "status": status}}
	out.SetGroupVersionKind(scaleKind())
	return out
}

// replicas are those that an object asks for; 0 if it says nothing.
func (t *table) replicas(o *unstructured.Unstructured) int64 {
	wanted, _, _ := unstructured.NestedInt64(o.Object, t.scale.spec...)
	return wanted
}

// selectorText returns a label selector as text; a custom resource has it so.
func selectorText(o *unstructured.Unstructured, path []string) string {
	switch value, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...); value := value.(type) {
	case string:
		return value
	case map[string]any:
		if _, plain := value["matchExpressions"]; !plain && value["matchLabels"] == nil {
			value = map[string]any{"matchLabels": value} // that of a ReplicationController
		}
		var selector metav1.LabelSelector
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(value, &selector); err == nil {
			return metav1.FormatLabelSelector(&selector)
		}
	}
	return ""
}

// rescale answers a request for the scale of an object.
func (s *Server) rescale(t *table, r Request) (any, error) {
	old := r.view.show(t.get(types.NamespacedName{Namespace: r.Namespace, Name: r.Name}))
	if old == nil {
		return nil, apierrors.NewNotFound(t.name(), r.Name)
	}
	sent := &unstructured.Unstructured{Object: r.Body}
	var err error
	switch r.Verb {
	case "get":
		return t.scaleOf(old).Object, nil
	case "update":
		if kind := sent.GroupVersionKind(); kind != scaleKind() && (!kind.Empty() || t.custom) {
			err = apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type Scale): %v", sent.GroupVersionKind()))
		}
	case "patch":
		of := &table{resource: resource{group: scaleKind().Group, kind: scaleKind().Kind}}
		sent, err = patched(of, r, t.scaleOf(old))
	default:
		err = apierrors.NewMethodNotSupported(t.name(), r.Verb)
	}
	if err != nil {
		return nil, err
	}
	if err := r.named(sent); err != nil {
		return nil, err
	}
	next, err := t.scaled(old, sent)
	if err != nil {
		return nil, err
	}
	if next, err = s.replace(t, r, old, next); err != nil {
		return nil, err
	}
	return t.scaleOf(next).Object, nil
}

// scaled returns an object with the scale that a client has sent.
func (t *table) scaled(old, sent *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	replicas, _, err := unstructured.NestedInt64(sent.Object, "spec", "replicas")
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if replicas < 0 {
		return nil, apierrors.NewInvalid(scaleKind().GroupKind(), old.GetName(), field.ErrorList{
			field.Invalid(field.NewPath("spec", "replicas"), replicas, "must be greater than or equal to 0")})
	}
	next := old.DeepCopy()
	if version := sent.GetResourceVersion(); version != "" {
		next.SetResourceVersion(version)
	}
	return next, unstructured.SetNestedField(next.Object, replicas, t.scale.spec...)
}
