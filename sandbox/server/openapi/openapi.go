// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package openapi makes the schemas of OpenAPI documents from the Go types of Kubernetes' kinds. It is pure.
package openapi

import (
	"reflect"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// components is the prefix of a document's references to its own schemas.
const components = "#/components/schemas/"

// named is a Go type with a name in OpenAPI documents.
type named interface{ OpenAPIModelName() string }

// scalar is a Go type whose JSON is no object.
type scalar interface {
	OpenAPISchemaType() []string
	OpenAPISchemaFormat() string
}

// either is a scalar whose JSON has one of several types.
type either interface{ OpenAPIV3OneOfTypes() []string }

// texted is a Go type that has the texts for people: of itself by the empty name, and of its fields.
type texted interface{ SwaggerDoc() map[string]string }

// Name returns the name of a value's type in documents.
func Name(value any) string { return nameOf(reflect.TypeOf(value)) }

// Reference returns a schema that is another one of the document, with a text of its own for people.
func Reference(name, text string) *spec.Schema {
	ref := spec.RefSchema(components + name)
	if text == "" {
		return ref
	}
	out := &spec.Schema{}
	out.AllOf = []spec.Schema{*ref}
	return out.WithDescription(text)
}

// Components returns the schemas of the values' types and of all types in their fields, by their names.
func Components(values ...any) map[string]*spec.Schema {
	out := builder{}
	for _, value := range values {
		out.add(reflect.TypeOf(value))
	}
	return out
}

// builder has the schemas of types by their names.
type builder map[string]*spec.Schema

// add adds a named type, unless it is there.
func (b builder) add(t reflect.Type) {
	name := nameOf(t)
	if b[name] != nil {
		return
	}
	out := &spec.Schema{}
	b[name] = out // a type can contain itself
	out.Description = textsOf(t)[""]
	if s, is := reflect.TypeAssert[scalar](reflect.Zero(t)); is {
		describe(out, s)
		return
	}
	out.Type = spec.StringOrArray{"object"}
	b.fields(out, t)
}

// describe says which JSON a scalar has.
func describe(out *spec.Schema, s scalar) {
	out.Format = s.OpenAPISchemaFormat()
	e, is := s.(either)
	if !is {
		out.Type = s.OpenAPISchemaType()
		return
	}
	for _, kind := range e.OpenAPIV3OneOfTypes() {
		one := spec.Schema{}
		one.Type = spec.StringOrArray{kind}
		out.OneOf = append(out.OneOf, one)
	}
}

// fields adds the fields of a type to its schema. Those of an embedded type are its own.
func (b builder) fields(out *spec.Schema, t reflect.Type) {
	if t.Kind() != reflect.Struct {
		return
	}
	texts := textsOf(t)
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
			continue
		case name == "":
			b.fields(out, f.Type)
			continue
		}
		property := b.of(f.Type, texts[name])
		if required(f, options) {
			out.Required = append(out.Required, name)
			property.Default = zero(f.Type)
		}
		for tag, extension := range map[string]string{"patchStrategy": "x-kubernetes-patch-strategy", "patchMergeKey": "x-kubernetes-patch-merge-key"} {
			if value := f.Tag.Get(tag); value != "" {
				property.AddExtension(extension, value)
			}
		}
		out.SetProperty(name, *property)
	}
}

// required reports whether a field is always in the JSON of its type, by the options of its tag.
func required(f reflect.StructField, options string) bool {
	return !strings.Contains(options, "omit") && f.Type.Kind() != reflect.Pointer
}

// zero returns the default of a required field; nil if it has none.
func zero(t reflect.Type) any {
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64:
		return reflect.Zero(t).Interface()
	}
	return nil
}

// of returns the schema of a field with a text.
func (b builder) of(t reflect.Type, text string) *spec.Schema {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if nameOf(t) != "" {
		b.add(t)
		return Reference(nameOf(t), text)
	}
	out := &spec.Schema{}
	switch t.Kind() {
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			out = spec.StrFmtProperty("byte")
		} else {
			out = spec.ArrayProperty(b.of(t.Elem(), ""))
		}
	case reflect.Map:
		out.Type = spec.StringOrArray{"object"}
		out.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: b.of(t.Elem(), "")}
	default:
		out = primitive(t.Kind())
	}
	return out.WithDescription(text)
}

// primitive returns the schema of a kind of Go values that JSON has, too.
func primitive(kind reflect.Kind) *spec.Schema {
	switch kind {
	case reflect.String:
		return spec.StringProperty()
	case reflect.Bool:
		return spec.BooleanProperty()
	case reflect.Int32:
		return spec.Int32Property()
	case reflect.Int, reflect.Int64:
		return spec.Int64Property()
	case reflect.Float32, reflect.Float64:
		return spec.Float64Property()
	}
	out := &spec.Schema{}
	out.Type = spec.StringOrArray{"object"}
	return out
}

// nameOf returns the name of a type in documents; empty if it has none.
func nameOf(t reflect.Type) string {
	if n, is := reflect.TypeAssert[named](reflect.Zero(t)); is && t.Kind() != reflect.Pointer {
		return n.OpenAPIModelName()
	}
	return ""
}

func textsOf(t reflect.Type) map[string]string {
	if texts, is := reflect.TypeAssert[texted](reflect.Zero(t)); is {
		return texts.SwaggerDoc()
	}
	return nil
}
