// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/warning"

	"github.com/handwerk-dev/handwerk/sandbox/server"
)

// created checks the metadata of a new object.
func (f *form) created(object map[string]any) field.ErrorList {
	meta, errs := metadataOf(object)
	if len(errs) > 0 {
		return errs
	}
	return validation.ValidateObjectMeta(meta, f.namespaced, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

// updated checks the metadata of an object that takes the place of a stored one. Like a real server, it checks them as those of a new
// object, too, and says again what the server itself has found.
func updated(object, stored map[string]any, namespaced bool) field.ErrorList {
	meta, errs := metadataOf(object)
	if len(errs) > 0 {
		return errs
	}
	old, errs := metadataOf(stored)
	if len(errs) > 0 {
		return errs
	}
	path := field.NewPath("metadata")
	out := validation.ValidateObjectMeta(meta, namespaced, isSegment, path)
	if len(out) > 0 {
		out = append(out, validation.ValidateObjectMetaUpdate(meta, meta, path)...)
	}
	return append(out, validation.ValidateObjectMetaUpdate(meta, old, path)...)
}

// isSegment returns why a name, or the prefix of one, cannot be a part of a path.
func isSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// metadataOf decodes the metadata of an object, except the managed fields, which the server writes.
func metadataOf(object map[string]any) (*metav1.ObjectMeta, field.ErrorList) {
	path, out := field.NewPath("metadata"), &metav1.ObjectMeta{}
	value := object["metadata"]
	if value == nil {
		return out, nil
	}
	fields, is := value.(map[string]any)
	if !is {
		return nil, field.ErrorList{field.Invalid(path, value, fmt.Sprintf("expected map[string]interface{}, got %T", value))}
	}
	whole := map[string]any{"metadata": fields}
	server.SetAside(whole)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(whole["metadata"].(map[string]any), out); err != nil {
		return nil, field.ErrorList{field.Invalid(path, value, err.Error())}
	}
	return out, nil
}

// cautions warns of new finalizers whose names may be those of others.
func cautions(ctx context.Context, object, stored map[string]any) {
	before, _, _ := unstructured.NestedStringSlice(stored, "metadata", "finalizers")
	now, _, _ := unstructured.NestedStringSlice(object, "metadata", "finalizers")
	slices.Sort(now)
	for _, name := range slices.Compact(now) {
		if slices.Contains(before, name) {
			continue
		}
		warn := func(why string) { warning.AddWarning(ctx, "", fmt.Sprintf("metadata.finalizers: %q: %s", name, why)) }
		for _, why := range utilvalidation.IsQualifiedName(name) {
			warn(why)
		}
		known := []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents, string(corev1.FinalizerKubernetes)}
		switch {
		case strings.Contains(name, "/"), slices.Contains(known, name):
		case strings.Contains(name, "."):
			warn("prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers")
		default:
			warn("prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers")
		}
	}
}
