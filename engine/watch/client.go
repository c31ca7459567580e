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
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/watchlist"
)

// dynamicClient is a dynamic client whose lists and watches are observed. Informers make them
// through Namespace, for all namespaces too.
type dynamicClient struct {
	dynamic.Interface
	seen *observer
}

// Resource returns the observed client of a resource.
func (c dynamicClient) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return dynamicResource{c.Interface.Resource(gvr), c.seen}
}

// IsWatchListSemanticsUnSupported passes on what the client says: fakes cannot stream lists.
func (c dynamicClient) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(c.Interface)
}

type dynamicResource struct {
	dynamic.NamespaceableResourceInterface
	seen *observer
}

// Namespace returns the observed client of a resource in a namespace.
func (r dynamicResource) Namespace(namespace string) dynamic.ResourceInterface {
	return dynamicScope{r.NamespaceableResourceInterface.Namespace(namespace), r.seen}
}

type dynamicScope struct {
	dynamic.ResourceInterface
	seen *observer
}

// List lists and notes the outcome.
func (s dynamicScope) List(ctx context.Context, opts metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return list(ctx, s.seen, opts, s.ResourceInterface.List)
}

// Watch watches and notes the outcome.
func (s dynamicScope) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	return s.seen.watch(ctx, opts, s.ResourceInterface.Watch)
}

// metadataClient is the same for a metadata client.
type metadataClient struct {
	metadata.Interface
	seen *observer
}

// Resource returns the observed client of a resource.
func (c metadataClient) Resource(gvr schema.GroupVersionResource) metadata.Getter {
	return metadataResource{c.Interface.Resource(gvr), c.seen}
}

// IsWatchListSemanticsUnSupported passes on what the client says: fakes cannot stream lists.
func (c metadataClient) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(c.Interface)
}

type metadataResource struct {
	metadata.Getter
	seen *observer
}

// Namespace returns the observed client of a resource in a namespace.
func (r metadataResource) Namespace(namespace string) metadata.ResourceInterface {
	return metadataScope{r.Getter.Namespace(namespace), r.seen}
}

type metadataScope struct {
	metadata.ResourceInterface
	seen *observer
}

// List lists and notes the outcome.
func (s metadataScope) List(ctx context.Context, opts metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	return list(ctx, s.seen, opts, s.ResourceInterface.List)
}

// Watch watches and notes the outcome.
func (s metadataScope) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	return s.seen.watch(ctx, opts, s.ResourceInterface.Watch)
}
