// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package openapi resolves the references in the schemas of OpenAPI documents. It is pure.
package openapi

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// components is the prefix of a document's references to its own schemas.
const components = "#/components/schemas/"

// Whole resolves the references of schemas, and removes texts for people. A schema that is used several times is
// shared. It is not safe for use by several goroutines.
type Whole struct {
	find func(name string) *spec.Schema
	done map[string]*spec.Schema
	// open are the schemas that are being resolved, because a schema may contain itself.
	open map[string]bool
}

// quantity is the name of the schema of all quantities in built-in kinds. Nothing in that schema itself tells it from other texts or
// numbers, so the resolved one has a format.
const (
	quantity       = "io.k8s.apimachinery.pkg.api.resource.Quantity"
	formatQuantity = "quantity"
)

// IsQuantity reports whether a resolved schema is that of quantities in built-in kinds.
func IsQuantity(s *spec.Schema) bool { return s.Format == formatQuantity }

// New returns a Whole. Find returns a schema by its name in the document, or nil.
func New(find func(name string) *spec.Schema) *Whole {
	return &Whole{find: find, done: map[string]*spec.Schema{}, open: map[string]bool{}}
}

// Named returns the resolved schema of a name. For an unknown name, and within itself, it is a schema that accepts
// anything.
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
	if name == quantity {
		out.Format = formatQuantity
	}
	delete(w.open, name)
	w.done[name] = &out
	return &out
}

// whole returns a schema with all references resolved.
func (w *Whole) whole(s spec.Schema) spec.Schema {
	if name, is := Reference(&s); is {
		return *w.Named(name)
	}
	s.Description, s.Title, s.Example = "", "", nil
	if s.Default != nil {
		s.Default = true // only the existence of a default matters
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

// either marks a schema that is an integer or text, such as a port: built-in kinds declare this differently from
// CRDs.
func either(s spec.Schema) spec.Schema {
	if len(s.Type) > 0 || len(s.OneOf) < 2 && s.Format != "int-or-string" {
		return s
	}
	extended := spec.Extensions{"x-kubernetes-int-or-string": true}
	maps.Copy(extended, s.Extensions)
	s.Extensions = extended
	return s
}

// Reference returns the name in a schema's reference. A reference with a description is in an allOf.
func Reference(s *spec.Schema) (name string, is bool) {
	text := s.Ref.String()
	if text == "" && len(s.AllOf) == 1 {
		text = s.AllOf[0].Ref.String()
	}
	return strings.CutPrefix(text, components)
}

// KindOf returns the kind whose objects a schema describes. Some kinds, such as DeleteOptions, are in several
// groups; for these there is none.
func KindOf(s *spec.Schema) (kind schema.GroupVersionKind, is bool) {
	var kinds []schema.GroupVersionKind
	if s.Extensions.GetObject("x-kubernetes-group-version-kind", &kinds) != nil || len(kinds) != 1 {
		return schema.GroupVersionKind{}, false
	}
	return kinds[0], true
}

// anything returns the schema of an object about which nothing is known.
func anything() *spec.Schema {
	out := &spec.Schema{}
	out.Type = spec.StringOrArray{"object"}
	out.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	return out
}
