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

// ownership keeps managedFields: who set what, and what server-side apply makes of it. It is guarded
// by the server's lock.
type ownership struct {
	custom  managedfields.TypeConverter
	builtin managedfields.TypeConverter
}

// updated returns next with its managedFields after a write that is no apply. There is no old for
// a new object.
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

// applied returns what apply makes of old, which is nil when there is none.
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

// converter knows the types of an object's fields. Those of built-in kinds take a while to parse,
// so they are parsed when they are first needed.
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

// untyped converts objects of which nothing but the metadata is known, as those of a CRD whose
// schema says nothing about lists: they are taken whole.
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

// ObjectToTyped gives an object's fields their types.
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

// asIs stands for the conversions and defaults that this server does not do.
type asIs struct{}

// Convert is not used.
func (asIs) Convert(any, any, any) error { return nil }

// ConvertToVersion changes the version's name and nothing else.
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
