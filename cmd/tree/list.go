// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"context"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/handwerk-dev/handwerk/engine/children/ownership"
)

const (
	// atOnce is how many kinds are listed at the same time, and page how many objects come in one answer.
	atOnce = 8
	page   = 500
)

// list lists the metadata of all objects in a namespace, to find those that refer to others. Without a namespace it lists all there
// are, for owners without one have children in any.
func (b *builder) list(ctx context.Context, namespace string) {
	if b.listed[""] || b.listed[namespace] {
		return
	}
	b.listed[namespace] = true
	if namespace == "" {
		clear(b.owned) // it is all listed again
	}
	if b.kinds == nil {
		b.kinds = b.discover()
	}
	todo := make(chan schema.GroupVersionResource)
	var running sync.WaitGroup
	for range atOnce {
		running.Go(func() {
			for kind := range todo {
				b.listKind(ctx, kind, namespace)
			}
		})
	}
	for _, kind := range b.kinds {
		todo <- kind
	}
	close(todo)
	running.Wait()
}

// discover returns the resources that can be listed: each once, without Events, which have no owner.
func (b *builder) discover() (out []schema.GroupVersionResource) {
	lists, err := b.Discovery.ServerPreferredResources()
	if err != nil {
		b.unread("some API groups: %v", err)
	}
	lists = discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "get"}}, lists)
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			if r.Name != "events" {
				out = append(out, version.WithResource(r.Name))
			}
		}
	}
	return out
}

// listKind lists the objects of one kind.
func (b *builder) listKind(ctx context.Context, kind schema.GroupVersionResource, namespace string) {
	if scope := b.scopeOf(kind); namespace != "" && scope != "namespace" {
		return // an object in a namespace owns none without one
	}
	options := metav1.ListOptions{Limit: page}
	for {
		list, err := b.Metadata.Resource(kind).Namespace(namespace).List(ctx, options)
		if err != nil {
			b.unread("%s: %v", kind.GroupResource(), err)
			return
		}
		b.enter(kind, list)
		if options.Continue = list.Continue; options.Continue == "" {
			return
		}
	}
}

func (b *builder) scopeOf(kind schema.GroupVersionResource) string {
	named, err := b.Mapper.KindFor(kind)
	if err != nil {
		return ""
	}
	mapping, err := b.Mapper.RESTMapping(named.GroupKind(), named.Version)
	if err != nil {
		return ""
	}
	return string(mapping.Scope.Name())
}

// enter notes which objects of a list refer to which.
func (b *builder) enter(kind schema.GroupVersionResource, list *metav1.PartialObjectMetadataList) {
	named, err := b.Mapper.KindFor(kind)
	if err != nil {
		b.unread("%s: %v", kind.GroupResource(), err)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range list.Items {
		o := &list.Items[i]
		for _, owner := range o.OwnerReferences {
			one := child{place: ownership.Place{Kind: named.GroupKind(), Namespace: o.Namespace, Name: o.Name}, tie: "reference"}
			if !slices.Contains(b.owned[owner.UID], one) {
				b.owned[owner.UID] = append(b.owned[owner.UID], one)
			}
		}
	}
}
