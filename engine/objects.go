// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cached"
)

// read returns the object, nil when it is gone.
func (r *resource) read(ctx context.Context, key cache.ObjectName) (*unstructured.Unstructured, error) {
	cached, found := r.own.Get(key)
	if !found {
		return nil, nil
	}
	if r.spec.Cache != dsl.CacheLive {
		return cached.Tree(), nil
	}
	object, err := r.engine.reader(ctx, r.own.Resource().GVR, key)
	if err != nil {
		return nil, fmt.Errorf("reading object: %w", err)
	}
	return object, nil
}

// objects returns all objects of the resource as the cache has them, sorted.
func (r *resource) objects() []*unstructured.Unstructured {
	out := []*unstructured.Unstructured{}
	for _, o := range r.own.Objects("") {
		out = append(out, r.tree(o))
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out
}

// tree returns the object as it was last seen, metadata alone where no more is held.
func (r *resource) tree(o *cached.Object) *unstructured.Unstructured {
	if t := o.Tree(); t != nil {
		return t
	}
	t := r.kindOnly()
	t.SetNamespace(o.GetNamespace())
	t.SetName(o.GetName())
	t.SetUID(o.GetUID())
	t.SetResourceVersion(o.GetResourceVersion())
	return t
}

// kindOnly is the object of a handler that has none.
func (r *resource) kindOnly() *unstructured.Unstructured {
	served := r.own.Resource()
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(served.GVR.GroupVersion().WithKind(served.Kind))
	return o
}
