// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// ownership maintains managedFields and does server-side apply. It is guarded by the server's lock.
type ownership struct {
	custom  managedfields.TypeConverter
	builtin managedfields.TypeConverter
}

// updated returns next with its managedFields after a write other than apply. For a new object, old is nil.
func (o *ownership) updated(t *table, r Request, old, next *unstructured.Unstructured) *unstructured.Unstructured {
	manager, err := o.manager(t, r)
	if err != nil {
		return next
	}
	if old == nil {
		old = blank(t)
	}
	return manager.UpdateNoErrors(old.DeepCopy(), next, r.manager()).(*unstructured.Unstructured)
}

// applied returns the result of an apply to old, which is nil for a new object.
func (o *ownership) applied(t *table, r Request, old, intent *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	manager, err := o.manager(t, r)
	if err != nil {
		return nil, err
	}
	if old == nil {
		old = blank(t)
	}
	out, err := manager.Apply(old.DeepCopy(), intent, r.manager(), r.options.Get("force") == "true")
	var known apierrors.APIStatus
	switch {
	case errors.As(err, &known):
		return nil, err
	case err != nil:
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return out.(*unstructured.Unstructured), nil
}

func (o *ownership) manager(t *table, r Request) (*managedfields.FieldManager, error) {
	kind := schema.GroupVersionKind{Group: t.group, Version: t.versions[0], Kind: t.kind}
	return managedfields.NewDefaultCRDFieldManager(
		o.converter(t), asIs{}, asIs{}, asIs{}, kind, kind.GroupVersion(), r.Subresource, nil)
}

// converter returns the types of an object's fields. Those of built-in kinds take a while to parse, so they are
// parsed on demand.
func (o *ownership) converter(t *table) managedfields.TypeConverter {
	switch {
	case t.typed && o.builtin == nil:
		o.builtin = applyconfigurations.NewTypeConverter(scheme.Scheme)
	case !t.typed && o.custom == nil:
		o.custom = newUntyped()
	}
	if t.typed {
		return o.builtin
	}
	return o.custom
}

func blank(t *table) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{}}}
	u.SetAPIVersion(t.apiVersion(t.versions[0]))
	u.SetKind(t.kind)
	return u
}

// untyped converts objects with a known type of the metadata only, as for a CRD whose schema says nothing about
// lists: lists are atomic.
type untyped struct {
	managedfields.TypeConverter
	object typed.ParseableType
}

func newUntyped() untyped {
	parser, err := typed.NewParser(untypedSchema)
	if err != nil {
		panic("apiserver: " + err.Error()) // not reached: the schema is a constant
	}
	return untyped{managedfields.NewDeducedTypeConverter(), parser.Type("object")}
}

// ObjectToTyped adds types to an object's fields.
func (u untyped) ObjectToTyped(object runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	return u.object.FromUnstructured(object.(*unstructured.Unstructured).Object, opts...)
}

const untypedSchema = `types:
- name: object
  map:
    fields:
    - name: metadata
      type: {namedType: metadata}
    elementType: {namedType: __untyped_deduced_}
- name: metadata
  map:
    fields:
    - name: finalizers
      type:
        list: {elementRelationship: associative, elementType: {scalar: string}}
    - name: ownerReferences
      type:
        list: {elementRelationship: associative, keys: [uid], elementType: {namedType: ownerReference}}
    elementType: {namedType: __untyped_deduced_}
- name: ownerReference
  map:
    elementType: {scalar: untyped}
    elementRelationship: atomic
- name: __untyped_atomic_
  scalar: untyped
  list: {elementRelationship: atomic, elementType: {namedType: __untyped_atomic_}}
  map: {elementRelationship: atomic, elementType: {namedType: __untyped_atomic_}}
- name: __untyped_deduced_
  scalar: untyped
  list: {elementRelationship: atomic, elementType: {namedType: __untyped_atomic_}}
  map: {elementRelationship: separable, elementType: {namedType: __untyped_deduced_}}
`

// asIs is a no-op for the conversions and defaults that this server does not do.
type asIs struct{}

// Convert is not used.
func (asIs) Convert(any, any, any) error { return nil }

// ConvertToVersion changes only the name of the version.
func (asIs) ConvertToVersion(o runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	kind, known := to.KindForGroupVersionKinds([]schema.GroupVersionKind{o.GetObjectKind().GroupVersionKind()})
	if !known {
		return o, nil
	}
	out := o.DeepCopyObject()
	out.GetObjectKind().SetGroupVersionKind(kind)
	return out, nil
}

// ConvertFieldLabel is not used.
func (asIs) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// Default does nothing.
func (asIs) Default(runtime.Object) {}

// New returns an empty object.
func (asIs) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u, nil
}
