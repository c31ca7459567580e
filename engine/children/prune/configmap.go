// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// configMap is the register at the API server.
type configMap struct {
	client          dynamic.ResourceInterface
	namespace, name string
	// earlier are the names of the ConfigMap in earlier versions of the operator.
	earlier []string
	// manager is the field manager. Managers are the operator's field managers under all its names.
	manager  string
	managers []string
}

// id is the ConfigMap's namespace and name.
func (c configMap) id() string { return c.namespace + "/" + c.name }

// read returns the ConfigMap, or nil if there is none. It takes over the registers of earlier names.
func (c configMap) read(ctx context.Context) (*unstructured.Unstructured, error) {
	o, err := c.get(ctx, c.name)
	if err != nil {
		return nil, err
	}
	return c.takeOver(ctx, o)
}

// get returns a ConfigMap of the namespace, or nil if there is none.
func (c configMap) get(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	o, err := c.client.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading ConfigMap %s/%s: %w", c.namespace, name, err)
	}
	return o, nil
}

// blankOr returns a copy of the ConfigMap, an empty one for nil.
func (c configMap) blankOr(o *unstructured.Unstructured) *unstructured.Unstructured {
	if o != nil {
		return o.DeepCopy()
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": c.name, "namespace": c.namespace},
	}}
}

// store updates or creates the ConfigMap. After its last key was removed, it has no managedFields, and the API server
// adds none by itself. Keys that are written then would have no manager, and would not count. So the update names the
// manager.
func (c configMap) store(ctx context.Context, o *unstructured.Unstructured, there bool) (*unstructured.Unstructured, error) {
	if there {
		if len(o.GetManagedFields()) == 0 {
			o.SetManagedFields([]metav1.ManagedFieldsEntry{{
				Manager: c.manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
				FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`),
			}})
		}
		return c.client.Update(ctx, o, metav1.UpdateOptions{FieldManager: c.manager})
	}
	return c.client.Create(ctx, o, metav1.CreateOptions{FieldManager: c.manager})
}

// set writes the kinds of a resource into the ConfigMap.
func set(o *unstructured.Unstructured, resource string, kinds []schema.GroupKind) error {
	if len(kinds) == 0 {
		unstructured.RemoveNestedField(o.Object, "data", resource)
		return nil
	}
	lines := make([]string, len(kinds))
	for i, kind := range kinds {
		lines[i] = kind.String() + "\n"
	}
	slices.Sort(lines)
	return unstructured.SetNestedField(o.Object, strings.Join(lines, ""), "data", resource)
}

// takeOver enters the kinds from registers of earlier names into the ConfigMap, and then deletes those registers. It
// returns the ConfigMap; nil if there is none.
func (c configMap) takeOver(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	for _, name := range c.earlier {
		earlier, err := c.get(ctx, name)
		if err != nil {
			return nil, err
		}
		if earlier == nil {
			continue
		}
		into := read(o, c.managers).kinds
		next, more := c.blankOr(o), false
		for resource, kinds := range read(earlier, c.managers).kinds {
			both := append(slices.Clone(into[resource]), kinds...)
			slices.SortFunc(both, func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
			if both = slices.Compact(both); len(both) == len(into[resource]) {
				continue
			}
			more = true
			if err := set(next, resource, both); err != nil {
				return nil, err
			}
		}
		if more {
			if o, err = c.store(ctx, next, o != nil); err != nil {
				return nil, fmt.Errorf("taking over ConfigMap %s/%s: %w", c.namespace, name, err)
			}
		}
		uid, version := earlier.GetUID(), earlier.GetResourceVersion()
		err = c.client.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("deleting ConfigMap %s/%s: %w", c.namespace, name, err)
		}
	}
	return o, nil
}
