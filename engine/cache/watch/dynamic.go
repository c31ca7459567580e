// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/watchlist"
)

// observedClient is a dynamic client for an informer. An observer records its lists and watches.
type observedClient struct {
	dynamic.Interface
	seen *observer
}

// Resource returns the client of a resource.
func (c observedClient) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return observedResource{c.Interface.Resource(gvr), c.seen}
}

// IsWatchListSemanticsUnSupported returns the client's own answer: fakes cannot stream lists.
func (c observedClient) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(c.Interface)
}

type observedResource struct {
	dynamic.NamespaceableResourceInterface
	seen *observer
}

// Namespace returns the client of the resource in a namespace, or in all.
func (r observedResource) Namespace(namespace string) dynamic.ResourceInterface {
	return observedObjects{r.NamespaceableResourceInterface.Namespace(namespace), r.seen}
}

type observedObjects struct {
	dynamic.ResourceInterface
	seen *observer
}

// List lists the objects, and records the result.
func (o observedObjects) List(ctx context.Context, opts metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return list(ctx, o.seen, opts, o.ResourceInterface.List)
}

// Watch watches the objects, and records the result.
func (o observedObjects) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	return o.seen.watch(ctx, opts, o.ResourceInterface.Watch)
}
