// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// The methods of client-go's interfaces that do not read the object.

// GetObjectKind returns the object itself.
func (o *Object) GetObjectKind() schema.ObjectKind { return o }

// DeepCopyObject returns a copy, which shares the bytes, because they are immutable.
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

// immutable has the required setters. They do nothing.
type immutable struct{}

func (immutable) SetGroupVersionKind(schema.GroupVersionKind)  {}
func (immutable) SetNamespace(string)                          {}
func (immutable) SetName(string)                               {}
func (immutable) SetGenerateName(string)                       {}
func (immutable) SetUID(types.UID)                             {}
func (immutable) SetResourceVersion(string)                    {}
func (immutable) SetGeneration(int64)                          {}
func (immutable) SetSelfLink(string)                           {}
func (immutable) SetCreationTimestamp(metav1.Time)             {}
func (immutable) SetDeletionTimestamp(*metav1.Time)            {}
func (immutable) SetDeletionGracePeriodSeconds(*int64)         {}
func (immutable) SetLabels(map[string]string)                  {}
func (immutable) SetAnnotations(map[string]string)             {}
func (immutable) SetFinalizers([]string)                       {}
func (immutable) SetOwnerReferences([]metav1.OwnerReference)   {}
func (immutable) SetManagedFields([]metav1.ManagedFieldsEntry) {}
