// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package openapi makes the schemas of OpenAPI documents whole: what they refer to is put in.
// It is pure.
package openapi

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// components is how a document refers to its own schemas.
const components = "#/components/schemas/"

// Whole puts in what schemas refer to, and takes out what is for people. What is referred to more than once is
// shared. It is not for use by several goroutines.
type Whole struct {
	find func(name string) *spec.Schema
	done map[string]*spec.Schema
	// open are those that are being put in: a schema may contain itself.
	open map[string]bool
}

// New returns a Whole that finds schemas by their names in the document; nil when there is none.
func New(find func(name string) *spec.Schema) *Whole {
	return &Whole{find: find, done: map[string]*spec.Schema{}, open: map[string]bool{}}
}

// Named returns the whole schema of a name. Where there is none, and within itself, it is that of anything.
func (w *Whole) Named(name string) *spec.Schema {
	if known, done := w.done[name]; done {
		return known
	}
	s := w.find(name)
	if s == nil || w.open[name] {
		return anything()
	}
	w.open[name] = true
	out := w.whole(*s)
	delete(w.open, name)
	w.done[name] = &out
	return &out
}

// whole returns a schema with everything put in.
func (w *Whole) whole(s spec.Schema) spec.Schema {
	if name, is := Reference(&s); is {
		return *w.Named(name)
	}
	s.Description, s.Title, s.Example = "", "", nil
	if s.Default != nil {
		s.Default = true // that there is one is all that is asked
	}
	if s.Properties != nil {
		properties := make(map[string]spec.Schema, len(s.Properties))
		for name, p := range s.Properties {
			properties[name] = w.whole(p)
		}
		s.Properties = properties
	}
	if s.Items != nil && s.Items.Schema != nil {
		items := w.whole(*s.Items.Schema)
		s.Items = &spec.SchemaOrArray{Schema: &items}
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		values := w.whole(*s.AdditionalProperties.Schema)
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: &values}
	}
	return either(s)
}

// either marks what is an integer or text, such as a port: built-in kinds say so in another way than
// CRDs do.
func either(s spec.Schema) spec.Schema {
	if len(s.Type) > 0 || len(s.OneOf) < 2 && s.Format != "int-or-string" {
		return s
	}
	extended := spec.Extensions{"x-kubernetes-int-or-string": true}
	maps.Copy(extended, s.Extensions)
	s.Extensions = extended
	return s
}

// Reference returns the name that a schema refers to; a reference with a description stands in an allOf.
func Reference(s *spec.Schema) (name string, is bool) {
	text := s.Ref.String()
	if text == "" && len(s.AllOf) == 1 {
		text = s.AllOf[0].Ref.String()
	}
	return strings.CutPrefix(text, components)
}

// KindOf returns the kind whose objects a schema describes; several groups have some, such as DeleteOptions, and
// those are nobody's.
func KindOf(s *spec.Schema) (kind schema.GroupVersionKind, is bool) {
	var kinds []schema.GroupVersionKind
	if s.Extensions.GetObject("x-kubernetes-group-version-kind", &kinds) != nil || len(kinds) != 1 {
		return schema.GroupVersionKind{}, false
	}
	return kinds[0], true
}

// anything is the schema of an object of which no more is known.
func anything() *spec.Schema {
	out := &spec.Schema{}
	out.Type = spec.StringOrArray{"object"}
	out.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	return out
}
