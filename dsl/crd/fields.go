// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// largest limits the size of a schema. Types count each time they are used.
const largest = 5000

// builder makes a schema and remembers the place of each part of it.
type builder struct {
	form   *Schema
	faults []*shape.Misfit
	// places are the places of parts of the schema, by the steps that lead to them.
	places map[string]place
	// open are the types that are being expanded; cyclic are those whose cycle was reported.
	open   []string
	cyclic []string
	// within are the Go types that are being expanded.
	within []reflect.Type
	size   int
	// strayed: reading a field found a fault, which is reported.
	strayed bool
}

// place is the place of a part of the schema.
type place struct {
	path []string
	// text is the text of the field that has the part, with the places of its characters there.
	text text
	at   []int
}

// steps lead to a part of the schema, as the API server names them: properties, spec, …
type steps []string

func (s steps) to(more ...string) steps { return slices.Concat(s, more) }

func (s steps) key() string { return strings.Join(s, "\x00") }

func (b *builder) note(path []string, line, column int, message string) {
	b.faults = append(b.faults, &shape.Misfit{Path: slices.Clone(path), Line: line, Column: column, Message: message})
}

// fault notes a fault of a value.
func (b *builder) fault(path []string, format string, args ...any) {
	b.note(path, 0, 0, fmt.Sprintf(format, args...))
}

// faultIn notes a fault at a character of a text.
func (b *builder) faultIn(path []string, t text, at int, message string) {
	line, column := t.position(at)
	b.note(path, line, column, message)
}

// root makes the schema of the whole object.
func (b *builder) root() *apiextensions.JSONSchemaProps {
	if whole := b.form.OpenAPIV3Schema; whole != nil {
		return cmp.Or(whole.props, &apiextensions.JSONSchemaProps{})
	}
	if b.form.from != nil {
		return b.wholeType()
	}
	for _, name := range slices.Sorted(maps.Keys(b.form.Types)) {
		b.typeName(name)
		b.own(name, steps{"types", name})
	}
	root := emptyObject()
	if b.form.Spec != nil {
		spec := b.object([]string{"spec"}, steps{"properties", "spec"}, b.form.Spec)
		if filled, ok := filling(spec); !ok {
			root.Required = []string{"spec"}
		} else if defaults(spec) {
			spec.Default = filled
		}
		root.Properties["spec"] = *spec
	}
	status := b.object([]string{"status"}, steps{"properties", "status"}, b.form.Status)
	b.finishStatus(status)
	root.Properties["status"] = *status
	b.rootRules(root)
	return root
}

// rootRules adds the rules over the whole object.
func (b *builder) rootRules(root *apiextensions.JSONSchemaProps) {
	for i, r := range b.form.Validation {
		root.XValidations = append(root.XValidations, apiextensions.ValidationRule{Rule: r.Rule, Message: r.Message})
		index := strconv.Itoa(i)
		b.places[steps{"x-kubernetes-validations", index}.key()] = place{path: []string{"validation", index, "rule"}}
	}
}

// finishStatus adds to a status the fields that every status has, and those that the engine keeps there.
func (b *builder) finishStatus(status *apiextensions.JSONSchemaProps) {
	if _, has := status.Properties["conditions"]; !has {
		status.Properties["conditions"] = conditions()
	}
	b.books(status)
}

// object makes the schema of an object with fields.
func (b *builder) object(path []string, to steps, fields Fields) *apiextensions.JSONSchemaProps {
	b.places[to.key()] = place{path: path}
	out := emptyObject()
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		field, required := b.field(slices.Concat(path, []string{name}), to.to("properties", name), fields[name])
		put(out, name, field, required)
	}
	return out
}

// put adds a field to the schema of an object.
func put(to *apiextensions.JSONSchemaProps, name string, field *apiextensions.JSONSchemaProps, required bool) {
	if required {
		to.Required = append(to.Required, name)
	} else if filled, ok := filling(field); ok && field.Default == nil && defaults(field) {
		field.Default = filled
	}
	to.Properties[name] = *field
}

// fits counts a field, and reports whether one more is allowed.
func (b *builder) fits() bool {
	if b.size++; b.size == largest+1 {
		b.fault(nil, "the schema has more than %d fields, counting what types repeat", largest)
	}
	return b.size <= largest
}

// field makes the schema of a field.
func (b *builder) field(path []string, to steps, f Field) (out *apiextensions.JSONSchemaProps, required bool) {
	if !b.fits() {
		return anything(), false
	}
	switch {
	case f.text != nil:
		return b.declared(path, to, text(*f.text))
	case f.object != nil:
		return b.object(path, to, f.object), false
	}
	b.strayed = true
	return anything(), false
}

// anything returns the schema for a part with a fault.
func anything() *apiextensions.JSONSchemaProps {
	return &apiextensions.JSONSchemaProps{XPreserveUnknownFields: new(true)}
}

// declared makes the schema of a field from its text.
func (b *builder) declared(path []string, to steps, t text) (out *apiextensions.JSONSchemaProps, required bool) {
	typ, at, markers, wrong := t.split()
	b.places[to.key()] = place{path: path, text: t, at: []int{at}}
	out = b.typed(path, to, t, typ, at)
	if wrong != nil {
		b.faultIn(path, t, wrong.at, wrong.message)
		return anything(), false
	}
	if out == nil || out.Type == "" && !out.XIntOrString {
		return anything(), false // the type has a fault
	}
	return out, b.mark(path, to, t, out, markers)
}

// conditions returns the schema of the standard list of conditions.
func conditions() apiextensions.JSONSchemaProps {
	words := []apiextensions.JSON{{Raw: []byte(`"True"`)}, {Raw: []byte(`"False"`)}, {Raw: []byte(`"Unknown"`)}}
	return apiextensions.JSONSchemaProps{
		Type: "array", Description: "What is known of the object's state.",
		XListType: new("map"), XListMapKeys: []string{"type"},
		Items: &apiextensions.JSONSchemaPropsOrArray{Schema: &apiextensions.JSONSchemaProps{
			Type:     "object",
			Required: []string{"lastTransitionTime", "message", "reason", "status", "type"},
			Properties: map[string]apiextensions.JSONSchemaProps{
				"type":               {Type: "string", Description: "What it is about."},
				"status":             {Type: "string", Enum: words},
				"reason":             {Type: "string", Description: "One word for programs."},
				"message":            {Type: "string", Description: "A sentence for people."},
				"lastTransitionTime": {Type: "string", Format: "date-time"},
				"observedGeneration": {Type: "integer", Format: "int64", Description: "The generation that it was found for."},
			},
		}},
	}
}
