// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/handwerk-dev/handwerk/engine/apiserver"
)

// created checks the metadata of a new object.
func (f *form) created(object map[string]any) field.ErrorList {
	meta, errs := metadataOf(object)
	if len(errs) > 0 {
		return errs
	}
	return validation.ValidateObjectMeta(meta, f.namespaced, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

// updated checks the metadata of an object that takes the place of a stored one. The server itself has checked the uid
// and the finalizers.
func updated(object, stored map[string]any) field.ErrorList {
	meta, errs := metadataOf(object)
	if len(errs) > 0 {
		return errs
	}
	old, errs := metadataOf(stored)
	if len(errs) > 0 {
		return errs
	}
	old.UID, old.Finalizers = meta.UID, meta.Finalizers
	return validation.ValidateObjectMetaUpdate(meta, old, field.NewPath("metadata"))
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
	apiserver.SetAside(whole)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(whole["metadata"].(map[string]any), out); err != nil {
		return nil, field.ErrorList{field.Invalid(path, value, err.Error())}
	}
	return out, nil
}
