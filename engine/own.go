// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
)

// ownPlaces are the operator's own objects, with a description for people.
type ownPlaces map[ownPlace]string

type ownPlace struct {
	resource schema.GroupResource
	key      cache.ObjectName
}

func ownPlacesOf(op *dsl.Operator, namespace string) ownPlaces {
	out := ownPlaces{}
	for _, each := range op.OwnPlaces(namespace) {
		out[ownPlace{each.Resource, cache.ObjectName{Namespace: each.Namespace, Name: each.Name}}] = each.What
	}
	return out
}

// has reports whether an object is the operator's own.
func (o ownPlaces) has(resource schema.GroupResource, key cache.ObjectName) bool {
	_, own := o[ownPlace{resource, key}]
	return own
}

// refusal returns the error for a handler's write to one of the operator's own objects, nil for other objects.
func (o ownPlaces) refusal(gvr schema.GroupVersionResource, key cache.ObjectName) error {
	what, own := o[ownPlace{gvr.GroupResource(), key}]
	if !own {
		return nil
	}
	return dsl.Permanent(fmt.Errorf("writing %s %s: it is the operator's own %s, which handlers may not touch: give the object another name",
		gvr.GroupResource(), key, what))
}

// guard returns a client that rejects writes to the operator's own objects.
func (o ownPlaces) guard(gvr schema.GroupVersionResource, namespace string, c dynamic.ResourceInterface) dynamic.ResourceInterface {
	for place := range o {
		if place.resource == gvr.GroupResource() && place.key.Namespace == namespace {
			return guarded{c, func(name string) error { return o.refusal(gvr, cache.ObjectName{Namespace: namespace, Name: name}) }}
		}
	}
	return c
}

// guarded is the client of guard.
type guarded struct {
	dynamic.ResourceInterface
	refusal func(name string) error
}

// Create implements [dynamic.ResourceInterface], as the other methods do.
func (g guarded) Create(ctx context.Context, o *unstructured.Unstructured, options metav1.CreateOptions, sub ...string) (*unstructured.Unstructured, error) {
	if err := g.refusal(o.GetName()); err != nil {
		return nil, err
	}
	return g.ResourceInterface.Create(ctx, o, options, sub...)
}

func (g guarded) Update(ctx context.Context, o *unstructured.Unstructured, options metav1.UpdateOptions, sub ...string) (*unstructured.Unstructured, error) {
	if err := g.refusal(o.GetName()); err != nil {
		return nil, err
	}
	return g.ResourceInterface.Update(ctx, o, options, sub...)
}

func (g guarded) UpdateStatus(ctx context.Context, o *unstructured.Unstructured, options metav1.UpdateOptions) (*unstructured.Unstructured, error) {
	return g.Update(ctx, o, options, "status")
}

func (g guarded) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, sub ...string) (*unstructured.Unstructured, error) {
	if err := g.refusal(name); err != nil {
		return nil, err
	}
	return g.ResourceInterface.Patch(ctx, name, kind, data, options, sub...)
}

func (g guarded) Apply(ctx context.Context, name string, o *unstructured.Unstructured, options metav1.ApplyOptions, sub ...string) (*unstructured.Unstructured, error) {
	if err := g.refusal(name); err != nil {
		return nil, err
	}
	return g.ResourceInterface.Apply(ctx, name, o, options, sub...)
}

func (g guarded) ApplyStatus(ctx context.Context, name string, o *unstructured.Unstructured, options metav1.ApplyOptions) (*unstructured.Unstructured, error) {
	return g.Apply(ctx, name, o, options, "status")
}

func (g guarded) Delete(ctx context.Context, name string, options metav1.DeleteOptions, sub ...string) error {
	if err := g.refusal(name); err != nil {
		return err
	}
	return g.ResourceInterface.Delete(ctx, name, options, sub...)
}

// DeleteCollection would delete the operator's own objects with the others.
func (g guarded) DeleteCollection(context.Context, metav1.DeleteOptions, metav1.ListOptions) error {
	return dsl.Permanent(errors.New("deleting a collection: the operator's own objects may be in it: delete objects one by one"))
}
