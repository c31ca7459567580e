// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// What client-go's interfaces ask of Object beyond reading it.

// GetObjectKind returns the object itself.
func (o *Object) GetObjectKind() schema.ObjectKind { return o }

// DeepCopyObject returns a copy, which shares the bytes: they never change.
func (o *Object) DeepCopyObject() runtime.Object {
	same := *o
	return &same
}

// GetGenerateName decodes the prefix that the name was generated from.
func (o *Object) GetGenerateName() string { return o.decoded().GenerateName }

// GetSelfLink decodes the self link, which servers no longer set.
//
//nolint:staticcheck // metav1.Object asks for it
func (o *Object) GetSelfLink() string { return o.decoded().SelfLink }

// GetDeletionGracePeriodSeconds decodes the grace period.
func (o *Object) GetDeletionGracePeriodSeconds() *int64 {
	return o.decoded().DeletionGracePeriodSeconds
}

// SetGroupVersionKind does nothing.
func (o *Object) SetGroupVersionKind(schema.GroupVersionKind) {}

// SetNamespace does nothing.
func (o *Object) SetNamespace(string) {}

// SetName does nothing.
func (o *Object) SetName(string) {}

// SetGenerateName does nothing.
func (o *Object) SetGenerateName(string) {}

// SetUID does nothing.
func (o *Object) SetUID(types.UID) {}

// SetResourceVersion does nothing.
func (o *Object) SetResourceVersion(string) {}

// SetGeneration does nothing.
func (o *Object) SetGeneration(int64) {}

// SetSelfLink does nothing.
func (o *Object) SetSelfLink(string) {}

// SetCreationTimestamp does nothing.
func (o *Object) SetCreationTimestamp(metav1.Time) {}

// SetDeletionTimestamp does nothing.
func (o *Object) SetDeletionTimestamp(*metav1.Time) {}

// SetDeletionGracePeriodSeconds does nothing.
func (o *Object) SetDeletionGracePeriodSeconds(*int64) {}

// SetLabels does nothing.
func (o *Object) SetLabels(map[string]string) {}

// SetAnnotations does nothing.
func (o *Object) SetAnnotations(map[string]string) {}

// SetFinalizers does nothing.
func (o *Object) SetFinalizers([]string) {}

// SetOwnerReferences does nothing.
func (o *Object) SetOwnerReferences([]metav1.OwnerReference) {}

// SetManagedFields does nothing.
func (o *Object) SetManagedFields([]metav1.ManagedFieldsEntry) {}
