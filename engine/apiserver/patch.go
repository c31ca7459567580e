// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

// patch applies a patch to an object. Only apply works without an object.
func (s *Server) patch(t *table, r Request, old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	switch types.PatchType(r.contentType) {
	case types.ApplyPatchType:
		return s.apply(t, r, old)
	case types.MergePatchType:
		next := &unstructured.Unstructured{Object: merge(old.DeepCopy().Object, r.Body)}
		return s.replace(t, r, old, next)
	case types.StrategicMergePatchType:
		next, err := strategic(old, r.Body)
		if err != nil {
			return nil, err
		}
		return s.replace(t, r, old, next)
	}
	return nil, unsupported(r)
}

// merge applies a merge patch (RFC 7386). It changes base.
func merge(base, patch map[string]any) map[string]any {
	for key, value := range patch {
		over, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(base, key)
		case isMap:
			below, _ := base[key].(map[string]any)
			if below == nil {
				below = map[string]any{}
			}
			base[key] = merge(below, over)
		default:
			base[key] = value
		}
	}
	return base
}

// strategic applies a strategic merge patch, which only built-in kinds support.
func strategic(old *unstructured.Unstructured, patch map[string]any) (*unstructured.Unstructured, error) {
	shape, err := scheme.Scheme.New(old.GroupVersionKind())
	if err != nil {
		return nil, unsupported(Request{contentType: string(types.StrategicMergePatchType)})
	}
	before, err := json.Marshal(old.Object)
	if err != nil {
		return nil, err
	}
	change, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	after, err := strategicpatch.StrategicMergePatch(before, change, shape)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	next := &unstructured.Unstructured{}
	return next, utiljson.Unmarshal(after, &next.Object)
}

// apply does a server-side apply.
func (s *Server) apply(t *table, r Request, old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	intent := &unstructured.Unstructured{Object: maps.Clone(r.Body)}
	if r.options.Get("fieldManager") == "" {
		return nil, apierrors.NewBadRequest("fieldManager is required for apply patch")
	}
	if intent.GetManagedFields() != nil {
		return nil, apierrors.NewBadRequest("metadata.managedFields must be nil")
	}
	switch {
	case r.Subresource == "status":
		intent.Object = map[string]any{
			"apiVersion": r.Body["apiVersion"], "kind": r.Body["kind"],
			"metadata": r.Body["metadata"], "status": r.Body["status"],
		}
	case t.status:
		delete(intent.Object, "status")
	}
	next, err := s.owners.applied(t, r, old, intent)
	switch {
	case err != nil:
		return nil, err
	case old != nil:
		return s.replace(t, r, old, next)
	case r.Subresource != "":
		return nil, apierrors.NewNotFound(t.name(), r.Name)
	case intent.GetUID() != "":
		return nil, apierrors.NewConflict(t.name(), r.Name, errUID)
	}
	if next.GetName() == "" {
		next.SetName(r.Name)
	}
	next.SetResourceVersion("") // it would be compared with a version, and there is none
	return s.create(t, r, next)
}
