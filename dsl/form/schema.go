// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package form

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Describe returns the schema of the values that [Decoder] accepts for a type. With is that of the decoder.
func Describe(t reflect.Type, with any) *Schema {
	d := &Describer{With: with, defs: map[string]*Schema{}}
	out := d.Of(t)
	out.Defs = d.defs
	return out
}

// Schema has the keywords of JSON Schema that forms need.
type Schema struct {
	Schema      string `json:"$schema,omitempty"`
	ID          string `json:"$id,omitempty"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Default     any    `json:"default,omitempty"`

	// Ref is the name of a schema in Defs.
	Ref   string    `json:"$ref,omitempty"`
	Type  string    `json:"type,omitempty"`
	OneOf []*Schema `json:"oneOf,omitempty"`
	AnyOf []*Schema `json:"anyOf,omitempty"`
	AllOf []*Schema `json:"allOf,omitempty"`
	Not   *Schema   `json:"not,omitempty"`

	Enum      []string `json:"enum,omitempty"`
	Pattern   string   `json:"pattern,omitempty"`
	MinLength int      `json:"minLength,omitempty"`
	Minimum   *float64 `json:"minimum,omitempty"`
	// PatternErrorMessage is the message that editors show for text that does not match.
	PatternErrorMessage string `json:"patternErrorMessage,omitempty"`

	Items    *Schema `json:"items,omitempty"`
	MinItems int     `json:"minItems,omitempty"`
	// UniqueItems: elements must differ.
	UniqueItems bool `json:"uniqueItems,omitempty"`

	Properties map[string]*Schema `json:"properties,omitempty"`
	Required   []string           `json:"required,omitempty"`
	// AdditionalProperties is false or a schema.
	AdditionalProperties any `json:"additionalProperties,omitempty"`
	MinProperties        int `json:"minProperties,omitempty"`

	// Defs are schemas that others refer to by name: those that contain themselves.
	Defs map[string]*Schema `json:"$defs,omitempty"`

	// What follows is for an [Outline], and not part of the document.

	// Called is what people call a value of this form, as in "CEL expression". Empty: what the keywords say.
	Called string `json:"-"`
	// Order has the names of Properties in the order for people. Those that it lacks come last.
	Order []string `json:"-"`
	// In are the lists that have this property in their elements, where several kinds of elements share a form.
	In []string `json:"-"`
	// Mistaken are names that the property has in other tools.
	Mistaken []string `json:"-"`
}

// Document returns the schema as a document of its own (draft 2020-12) with this name and title. It sets the keywords that
// the root of a document has.
func (s *Schema) Document(name, title string) ([]byte, error) {
	s.Schema, s.ID, s.Title = "https://json-schema.org/draft/2020-12/schema", "https://handwerk.dev/schemas/"+name, title
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(s)
	return out.Bytes(), err
}

// durationPattern matches durations.
const durationPattern = `^\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`

// Describer describes Go types.
type Describer struct {
	// With is additional input for types with their own form; their package defines it.
	With any
	// Foreign is set while structs of another API are described.
	Foreign *Foreign

	defs map[string]*Schema
}

// definitions is what the reference to a definition begins with.
const definitions = "#/$defs/"

// Define returns a reference to the schema of that name, which may contain references to itself.
func (s *Describer) Define(name string, describe func() *Schema) *Schema {
	if s.defs[name] == nil {
		s.defs[name] = &Schema{} // for references to itself
		*s.defs[name] = *describe()
	}
	return &Schema{Ref: definitions + name}
}

// Of describes a type in the form that the decoder reads.
func (s *Describer) Of(t reflect.Type) *Schema {
	if t.Kind() == reflect.Pointer {
		return s.Of(t.Elem())
	}
	if own := s.Foreign.formOf(reflect.New(t).Elem()); own != nil {
		return own.DescribeForm(s)
	}
	if c, ok := reflect.TypeAssert[Choice](reflect.Zero(t)); ok {
		out := &Schema{Type: "string"}
		_, out.Enum = c.Choices()
		if d, ok := c.(Documented); ok {
			out.Description = d.FormDoc()
		}
		return out
	}
	switch {
	case t == reflect.TypeFor[time.Duration](), t == reflect.TypeFor[Delay]():
		return &Schema{Type: "string", Pattern: durationPattern, PatternErrorMessage: wantDuration}
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return &Schema{Type: "string", MinLength: 1}
	}
	switch t.Kind() {
	case reflect.Struct:
		return s.Struct(t)
	case reflect.Slice:
		out := &Schema{Type: "array", Items: s.Filled(t.Elem())}
		if s.Foreign == nil {
			out.MinItems = 1
		}
		return out
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

// Filled is [Describer.Of] for text that must not be empty.
func (s *Describer) Filled(t reflect.Type) *Schema {
	out := s.Of(t)
	if t.Kind() == reflect.String && out.Type == "string" && out.Enum == nil && s.Foreign == nil {
		out.MinLength = 1
	}
	return out
}

// Struct describes a struct.
func (s *Describer) Struct(t reflect.Type) *Schema {
	out := &Schema{Type: "object", Properties: map[string]*Schema{}, AdditionalProperties: false}
	names, fields := fieldsOf(t, false)
	out.Order = names
	for _, name := range names {
		field := fields[name]
		property := s.Filled(field.Type)
		property.Description = field.Tag.Get("doc")
		if text := field.Tag.Get("default"); text != "" {
			property.Default = value(text)
		}
		if least, err := strconv.ParseFloat(field.Tag.Get("min"), 64); err == nil && property.Type == "object" {
			property.MinProperties = int(least)
		} else if err == nil {
			property.Minimum = &least
		}
		property.UniqueItems = field.Tag.Get("unique") != ""
		if others := field.Tag.Get("mistaken"); others != "" {
			property.Mistaken = strings.Split(others, ",")
		}
		switch other := field.Tag.Get("unless"); {
		case field.Tag.Get("required") == "":
		case other == "":
			out.Required = append(out.Required, name)
		default:
			out.AllOf = append(out.AllOf, OneRequired(append([]string{name}, strings.Split(other, ",")...)...))
		}
		out.Properties[name] = property
	}
	return out
}

// OneRequired returns a schema that requires at least one of a few fields.
func OneRequired(names ...string) *Schema {
	out := &Schema{}
	for _, name := range names {
		out.AnyOf = append(out.AnyOf, &Schema{Required: []string{name}})
	}
	return out
}

// value reads a default as JSON, or as text if it is not JSON.
func value(text string) any {
	var out any
	if json.Unmarshal([]byte(text), &out) != nil {
		return text
	}
	return out
}
