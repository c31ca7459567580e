// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"math"
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

// absentReplicas is the number of a real server for the replicas of a custom resource that has none.
const absentReplicas = math.MinInt32

// lacksReplicas reports whether an object says nothing about replicas. A built-in one always does.
func (t *table) lacksReplicas(o *unstructured.Unstructured) bool {
	_, found, _ := unstructured.NestedInt64(o.Object, t.scale.spec...)
	return t.custom && !found
}

// shownScale returns the scale of an object for a read.
func (t *table) shownScale(o *unstructured.Unstructured) (any, error) {
	if t.lacksReplicas(o) {
		return nil, apierrors.NewInternalError(fmt.Errorf("the spec replicas field %q does not exist", t.scale.text()))
	}
	return t.scaleOf(o).Object, nil
}

// scaleToPatch returns the scale of an object as a patch finds it.
func (t *table) scaleToPatch(o *unstructured.Unstructured) *unstructured.Unstructured {
	out := t.scaleOf(o)
	if t.lacksReplicas(o) {
		out.Object["spec"] = map[string]any{"replicas": int64(absentReplicas)}
	}
	return out
}

// text returns the path of the wanted replicas as a CRD has it.
func (s *scaling) text() string { return "." + strings.Join(s.spec, ".") }

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
	old, err := r.view.read(t.get(types.NamespacedName{Namespace: r.Namespace, Name: r.Name}))
	if err != nil {
		return nil, err
	}
	var sent *unstructured.Unstructured
	if r.Verb == "update" { // the body is looked at before the object
		if sent, err = s.scaleFrom(r, t.custom, nil); err != nil {
			return nil, err
		}
	}
	switch {
	case old == nil:
		return nil, apierrors.NewNotFound(t.name(), r.Name)
	case r.Verb == "get":
		return t.shownScale(old)
	case r.applies():
		return s.applyScale(t, r, old, &unstructured.Unstructured{Object: r.Body})
	case r.Verb == "patch":
		sent, err = s.scaleFrom(r, t.custom, t.scaleToPatch(old))
	case r.Verb == "update":
		err = s.otherUID(t, sent, old.GetUID())
	default:
		err = apierrors.NewMethodNotSupported(t.name(), r.Verb)
	}
	if err != nil {
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

// scaleFrom returns the scale that a client sends, or that its patch makes of a scale.
func (s *Server) scaleFrom(r Request, custom bool, scale *unstructured.Unstructured) (sent *unstructured.Unstructured, err error) {
	kind := scaleKind()
	t := &table{resource: resource{group: kind.Group, kind: kind.Kind, versions: []string{kind.Version}}}
	r.Resource, r.Subresource = kind.GroupVersion().WithResource("scales"), ""
	if scale == nil {
		sent, err = r.object(t)
	} else if sent, err = patched(t, r, scale); err == nil {
		if version := sent.Object["apiVersion"]; custom && (version == nil || version == "") { // the server has no type of its own for it
			sent.SetAPIVersion(kind.GroupVersion().String())
		}
		err = s.keepsKind(t, r, scale, sent)
	}
	if err == nil {
		err = s.decode(t, r, sent, nil)
	}
	if err != nil && custom && scale == nil { // a real server has no words for this
		err = apierrors.NewBadRequest(fmt.Sprintf("no kind is registered for the type v1.Scale in scheme %q", "pkg/runtime/scheme.go:111"))
	}
	if err == nil {
		err = r.named(sent)
	}
	return sent, err
}

// applyScale does a server-side apply of a scale: as if its replicas alone were applied to the object.
func (s *Server) applyScale(t *table, r Request, old, sent *unstructured.Unstructured) (any, error) {
	if kind := sent.GroupVersionKind(); kind != scaleKind() {
		return nil, apierrors.NewBadRequest("invalid object type: " + kind.String())
	}
	if t.custom { // a real server fails, too
		return nil, internalError(fmt.Errorf("failed to convert new object (%s/%s; %s) to proper version: request to convert CR to an invalid group/version: %s",
			sent.GetNamespace(), sent.GetName(), scaleKind(), scaleKind().GroupVersion()))
	}
	intent := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{}}}
	intent.SetAPIVersion(old.GetAPIVersion())
	intent.SetKind(t.kind)
	intent.SetNamespace(r.Namespace)
	intent.SetName(r.Name)
	replicas, found, err := unstructured.NestedInt64(sent.Object, "spec", "replicas")
	if err == nil && found {
		err = unstructured.SetNestedField(intent.Object, replicas, t.scale.spec...)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if sent.GetName() == "" { // the path has it
		sent.SetName(r.Name)
	}
	if err := r.named(sent); err != nil {
		return nil, err
	}
	next, err := s.owners.applied(t, r, old, intent)
	if err != nil {
		return nil, err
	}
	if next, err = t.scaled(next, t.scaleOf(next)); err != nil {
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
	if replicas == absentReplicas && t.custom {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the spec replicas field %q cannot be empty", t.scale.text()))
	}
	if replicas < 0 && !t.custom { // that of a custom resource is checked with the rest of the object
		return nil, apierrors.NewInvalid(scaleKind().GroupKind(), old.GetName(), field.ErrorList{
			field.Invalid(field.NewPath("spec", "replicas"), replicas, "must be greater than or equal to 0")})
	}
	if uid := sent.GetUID(); uid != "" && uid != old.GetUID() && !t.custom { // whose uid is not looked at
		resource := schema.GroupResource{Group: t.group, Resource: t.plural + "/scale"}
		return nil, apierrors.NewConflict(resource, old.GetName(), fmt.Errorf( //nolint:staticcheck // the words are the API server's
			"Precondition failed: UID in precondition: %s, UID in object meta: %s", uid, old.GetUID()))
	}
	next := old.DeepCopy()
	if version := sent.GetResourceVersion(); version != "" {
		next.SetResourceVersion(version)
	}
	return next, unstructured.SetNestedField(next.Object, replicas, t.scale.spec...)
}
