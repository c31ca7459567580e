// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// Handled is a client for the objects that handlers look at. Answers to writes lack managedFields, because the caller knows
// what it wrote; objects that are read have them. Most reconciles write nothing, so clients are made when they are used.
type Handled struct {
	Clients *Clients
	// Access gets the refused requests.
	Access interface {
		Client(c dynamic.ResourceInterface) dynamic.ResourceInterface
	}
	GVR       schema.GroupVersionResource
	Namespace string
}

// Get reads an object.
func (h Handled) Get(ctx context.Context, name string, options metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error) {
	return h.Access.Client(h.Clients.Dynamic.Resource(h.GVR).Namespace(h.Namespace)).Get(ctx, name, options, sub...)
}

// Patch sends a patch.
func (h Handled) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, sub ...string) (*unstructured.Unstructured, error) {
	return h.Access.Client(h.Clients.Slim.Resource(h.GVR).Namespace(h.Namespace)).Patch(ctx, name, kind, data, options, sub...)
}
