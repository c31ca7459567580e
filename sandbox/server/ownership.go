// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/handwerk-dev/handwerk/sandbox/clock"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// ownership maintains managedFields and does server-side apply. It is guarded by the server's lock.
type ownership struct {
	// strict: the server has schemas.
	strict bool
	clock  clock.Clock
}

// updated returns next with its managedFields after a write other than apply. For a new object, old is nil.
func (o *ownership) updated(t *table, r Request, old, next *unstructured.Unstructured) *unstructured.Unstructured {
	m := o.managing(t, r)
	if old == nil {
		old = t.blank(m.kind)
	}
	if r.Subresource == "scale" {
		m.noteScale(t, r, old, next)
		return next
	}
	if t.reformed == 0 && m.note(r, old, next) { // with other schemas than before, entries may have to change by themselves
		return next
	}
	manager, err := m.manager(t, r)
	if err != nil {
		return next
	}
	out, err := updatedBy(manager, r, old, next)
	restamp(old, out, m.now)
	if err != nil { // the entries that a client sends count only if all of them can be read
		next.SetManagedFields(old.GetManagedFields())
		return next
	}
	return out
}

// statusBy returns an object whose status the server itself has changed, with a program of a real cluster as the manager of the changes.
func (s *Server) statusBy(agent string, t *table, old, next *unstructured.Unstructured) *unstructured.Unstructured {
	r := Request{Verb: "update", Subresource: "status", Resource: t.name().WithVersion(t.versions[0]), agent: agent}
	return s.owners.updated(t, r, old, next)
}

// updatedBy returns next with its managedFields after a write other than apply.
func updatedBy(manager *managedfields.FieldManager, r Request, old, next *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	out, err := manager.Update(old.DeepCopy(), next, r.manager())
	if err != nil {
		return nil, err
	}
	return out.(*unstructured.Unstructured), nil
}

// applied returns the result of an apply to old, which is nil for a new object.
func (o *ownership) applied(t *table, r Request, old, intent *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	m := o.managing(t, r)
	if old == nil {
		if out := m.first(r, intent); out != nil && (o.strict || !t.typed) { // else it lacks what it has by its Go type
			return out, nil
		}
		old = t.blank(m.kind)
	}
	manager, err := m.manager(t, r)
	if err != nil {
		return nil, err
	}
	out, err := manager.Apply(old.DeepCopy(), intent.DeepCopy(), r.manager(), isTrue(r.options.Get("force")))
	restamp(old, out, m.now)
	var known apierrors.APIStatus
	switch {
	case errors.As(err, &known):
		return nil, err
	case err != nil:
		return nil, internalError(err)
	}
	return out.(*unstructured.Unstructured), nil
}

// restamp gives the entries that a write has changed the time of the server's clock; the library gives them the machine's.
func restamp(old, next runtime.Object, now string) {
	is, ok := next.(*unstructured.Unstructured)
	if !ok || is == nil {
		return
	}
	var kept []any
	for _, entry := range entriesOf(old.(*unstructured.Unstructured)) {
		kept = append(kept, entry["time"])
	}
	for _, entry := range entriesOf(is) {
		if entry["subresource"] == "scale" {
			delete(entry, "time")
		}
		if entry["time"] != nil && !slices.Contains(kept, entry["time"]) {
			entry["time"] = now
		}
	}
}

// entriesOf returns the entries of an object's managedFields as they are stored.
func entriesOf(o *unstructured.Unstructured) (out []map[string]any) {
	metadata, _ := o.Object["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	for _, item := range list {
		if entry, is := item.(map[string]any); is {
			out = append(out, entry)
		}
	}
	return out
}

// managing returns how the fields of a request's object are managed. With a schema that has the types of a CRD's fields, its
// kind has the version of the request; each other object has one version.
func (o *ownership) managing(t *table, r Request) managing {
	m := managing{
		now:  stamp(o.clock.Now()),
		kind: schema.GroupVersionKind{Group: t.group, Version: t.versions[0], Kind: t.kind}, form: t.schemas[r.Resource.Version],
		types: t.converter(r.Resource.Version),
	}
	if m.types != nil {
		m.kind.Version, m.resets = r.Resource.Version, t.resets(r)
		return m
	}
	if !t.custom && t.storage != "" {
		m.kind.Version = r.Resource.Version
	}
	if m.types = t.typesOfKind(); t.typed {
		m.checked, m.resets = o.strict, t.resetsTyped(r)
	} else if t.name() == crds() {
		m.resets = t.resetsTyped(r)
	}
	return m
}

// manager returns what keeps the managedFields of a request's object.
func (m managing) manager(t *table, r Request) (*managedfields.FieldManager, error) {
	hub := m.kind.GroupVersion()
	if !t.custom && t.storage != "" {
		hub.Version = t.storage
	}
	return managedfields.NewDefaultCRDFieldManager(
		m.types, asIs{table: t}, asIs{table: t, form: m.form}, blanks{t}, m.kind, hub, r.Subresource, m.resets)
}

// converter returns the types of the fields of a CRD's objects; nil if they are not known.
func (t *table) converter(version string) managedfields.TypeConverter {
	if form := t.schemas[version]; form != nil {
		return form.Converter()
	}
	return nil
}

// resets returns the fields that a client of a CRD's objects may send without effect, and so does not come to manage.
func (t *table) resets(r Request) map[fieldpath.APIVersion]fieldpath.Filter {
	out := map[fieldpath.APIVersion]*fieldpath.Set{}
	switch {
	case r.Subresource == "status":
		for _, version := range t.versions {
			out[fieldpath.APIVersion(t.apiVersion(version))] = fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec"))
		}
	case r.Subresource == "" && t.status:
		out[fieldpath.APIVersion(t.apiVersion(r.Resource.Version))] = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	}
	return fieldpath.NewExcludeFilterSetMap(out)
}

// resetsTyped returns the fields that a client of a built-in kind may send without effect.
func (t *table) resetsTyped(r Request) map[fieldpath.APIVersion]fieldpath.Filter {
	without := []fieldpath.Path{fieldpath.MakePathOrDie("status")}
	switch {
	case t.name() == signingRequests():
		without = resetsOfRequest(r.Subresource)
	case r.Subresource == "status":
		without[0] = fieldpath.MakePathOrDie("spec")
	case r.Subresource != "" || !t.status:
		return nil
	}
	out := map[fieldpath.APIVersion]*fieldpath.Set{}
	for _, version := range t.versions {
		out[fieldpath.APIVersion(t.apiVersion(version))] = fieldpath.NewSet(without...)
	}
	return fieldpath.NewExcludeFilterSetMap(out)
}

// typesOfKind returns the types of the fields of an object that has one version, or of a built-in one.
func (t *table) typesOfKind() managedfields.TypeConverter {
	switch {
	case t.name() == crds():
		return definitionFields()
	case !t.typed:
		return untypedFields()
	}
	out := builtinTypes.of(schema.GroupVersionKind{Group: t.group, Version: t.versions[0], Kind: t.kind})
	if len(t.versions) > 1 {
		return typesByVersion{out}
	}
	return out
}

// typesByVersion converts objects of all versions of a built-in kind.
type typesByVersion struct{ managedfields.TypeConverter }

// ObjectToTyped adds types to an object's fields.
func (typesByVersion) ObjectToTyped(o runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	return builtinTypes.of(o.GetObjectKind().GroupVersionKind()).ObjectToTyped(o, opts...)
}

// blank returns an object of a kind without content. One with a Go type has the fields that it always has in JSON, such
// as the spec: they are not managed because an object has them.
func (t *table) blank(kind schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{}}}
	if t.typed {
		if o, err := scheme.Scheme.New(kind); err == nil {
			if tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o); err == nil {
				u.Object = tree
			}
		}
	} else if t.name() == crds() {
		u.Object["spec"] = map[string]any{"group": "", "names": map[string]any{"plural": "", "kind": ""}, "scope": "", "versions": nil}
		u.Object["status"] = map[string]any{"acceptedNames": map[string]any{"plural": "", "kind": ""}, "conditions": nil}
	}
	u.SetGroupVersionKind(kind)
	return u
}

// blanks makes objects of a table without content.
type blanks struct{ table *table }

// New returns an object without content.
func (b blanks) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	return b.table.blank(kind), nil
}

// untyped converts objects with a known type of the metadata only, as for a CRD whose schema says nothing about
// lists: lists are atomic.
type untyped struct {
	managedfields.TypeConverter
	object typed.ParseableType
}

// untypedFields returns the types of the fields of objects without known types. They are read once in a process.
var untypedFields = sync.OnceValue(func() managedfields.TypeConverter { return fieldsOf("object") })

// definitionFields returns the types of the fields of CRDs.
var definitionFields = sync.OnceValue(func() managedfields.TypeConverter { return fieldsOf("definition") })

func fieldsOf(name string) managedfields.TypeConverter {
	parser, err := typed.NewParser(untypedSchema)
	if err != nil {
		panic("server: " + err.Error()) // not reached: the schema is a constant
	}
	return untyped{managedfields.NewDeducedTypeConverter(), parser.Type(name)}
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
- name: definition
  map:
    fields:
    - name: metadata
      type: {namedType: metadata}
    - name: spec
      type:
        map:
          fields:
          - name: names
            type: {namedType: __untyped_deduced_}
          - name: conversion
            type: {namedType: __untyped_deduced_}
          elementType: {namedType: __untyped_deduced_}
    - name: status
      type:
        map:
          fields:
          - name: acceptedNames
            type: {namedType: __untyped_deduced_}
          - name: conditions
            type:
              list: {elementRelationship: associative, keys: [type], elementType: {namedType: __untyped_deduced_}}
          elementType: {namedType: __untyped_deduced_}
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

// asIs is a no-op for the conversions and defaults that this server does not do. With a schema, it sets its defaults.
type asIs struct {
	table *table
	form  Schema
}

// Convert is not used.
func (asIs) Convert(any, any, any) error { return nil }

// ConvertToVersion changes only the name of the version, unless a webhook converts the objects, or a built-in kind has several versions.
// An object that has it already stays itself.
func (a asIs) ConvertToVersion(o runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	is := o.GetObjectKind().GroupVersionKind()
	if version, one := to.(schema.GroupVersion); one && a.table.custom && (version.Group != is.Group || !slices.Contains(a.table.defined, version.Version)) {
		return nil, fmt.Errorf("request to convert CR to an invalid group/version: %s", version)
	}
	kind, known := to.KindForGroupVersionKinds([]schema.GroupVersionKind{is})
	if !known || kind == is {
		return o, nil
	}
	if a.table.custom && a.table.webhook != nil {
		return a.table.viewIn(kind.Version).convertObject(o.(*unstructured.Unstructured))
	}
	out := o.DeepCopyObject()
	if a.table.custom || len(a.table.versions) == 1 {
		out.GetObjectKind().SetGroupVersionKind(kind)
		return out, nil
	}
	if !slices.Contains(a.table.versions, kind.Version) {
		return nil, runtime.NewNotRegisteredErrForKind(scheme.Scheme.Name(), kind)
	}
	return a.table.viewIn(kind.Version).converted(out.(*unstructured.Unstructured)), nil
}

// ConvertFieldLabel is not used.
func (asIs) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// Default sets the defaults of the schema.
func (a asIs) Default(o runtime.Object) {
	if a.form != nil {
		a.form.Default(o.(*unstructured.Unstructured).Object)
	}
}
