// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package form

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"time"
)

// Describe returns the schema of what [Decoder] reads into a value of the type.
// With is that of the decoder.
func Describe(t reflect.Type, with any) *Schema {
	return (&Describer{With: with}).Of(t)
}

// Schema has the words of JSON Schema that the form needs.
type Schema struct {
	Schema      string `json:"$schema,omitempty"`
	ID          string `json:"$id,omitempty"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Default     any    `json:"default,omitempty"`

	Type  string    `json:"type,omitempty"`
	OneOf []*Schema `json:"oneOf,omitempty"`

	Enum      []string `json:"enum,omitempty"`
	Pattern   string   `json:"pattern,omitempty"`
	MinLength int      `json:"minLength,omitempty"`
	Minimum   *float64 `json:"minimum,omitempty"`

	Items    *Schema `json:"items,omitempty"`
	MinItems int     `json:"minItems,omitempty"`
	// UniqueItems: no element is there twice.
	UniqueItems bool `json:"uniqueItems,omitempty"`

	Properties map[string]*Schema `json:"properties,omitempty"`
	Required   []string           `json:"required,omitempty"`
	// AdditionalProperties is false or a schema.
	AdditionalProperties any `json:"additionalProperties,omitempty"`
	MinProperties        int `json:"minProperties,omitempty"`
}

// durationPattern is how durations are written.
const durationPattern = `^\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`

// Describer describes Go types.
type Describer struct {
	// With is what forms of their own have to know, as their package says.
	With any
}

// Of describes a type as the decoder reads it.
func (s *Describer) Of(t reflect.Type) *Schema {
	if t.Kind() == reflect.Pointer {
		return s.Of(t.Elem())
	}
	if f, ok := reflect.TypeAssert[Form](reflect.New(t)); ok {
		return f.DescribeForm(s)
	}
	if c, ok := reflect.TypeAssert[Choice](reflect.Zero(t)); ok {
		_, words := c.Choices()
		out := &Schema{Type: "string", Enum: words}
		if d, ok := c.(Documented); ok {
			out.Description = d.FormDoc()
		}
		return out
	}
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return &Schema{Type: "string", Pattern: durationPattern}
	case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		return &Schema{}
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return &Schema{Type: "string", MinLength: 1}
	}
	switch t.Kind() {
	case reflect.Struct:
		return s.Struct(t)
	case reflect.Slice:
		return &Schema{Type: "array", Items: s.Filled(t.Elem()), MinItems: 1}
	case reflect.Map:
		return &Schema{Type: "object", AdditionalProperties: s.Of(t.Elem())}
	case reflect.String:
		return &Schema{Type: "string"}
	case reflect.Bool:
		return &Schema{Type: "boolean"}
	case reflect.Float32, reflect.Float64:
		return &Schema{Type: "number"}
	case reflect.Interface:
		return &Schema{}
	default:
		return &Schema{Type: "integer"}
	}
}

// Filled is [Describer.Of], but text must not be empty.
func (s *Describer) Filled(t reflect.Type) *Schema {
	out := s.Of(t)
	if t.Kind() == reflect.String && out.Type == "string" && out.Enum == nil {
		out.MinLength = 1
	}
	return out
}

// Struct describes a struct.
func (s *Describer) Struct(t reflect.Type) *Schema {
	out := &Schema{Type: "object", Properties: map[string]*Schema{}, AdditionalProperties: false}
	names, fields := fieldsOf(t)
	for _, name := range names {
		field := fields[name]
		property := s.Filled(field.Type)
		property.Description = field.Tag.Get("doc")
		if text := field.Tag.Get("default"); text != "" {
			property.Default = value(text)
		}
		if least, err := strconv.ParseFloat(field.Tag.Get("min"), 64); err == nil {
			property.Minimum = &least
		}
		property.UniqueItems = field.Tag.Get("unique") != ""
		if field.Tag.Get("required") != "" && field.Tag.Get("unless") == "" {
			out.Required = append(out.Required, name)
		}
		out.Properties[name] = property
	}
	return out
}

// value reads a default: JSON where it is, else text.
func value(text string) any {
	var out any
	if json.Unmarshal([]byte(text), &out) != nil {
		return text
	}
	return out
}
