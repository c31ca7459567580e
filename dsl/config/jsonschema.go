// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Schema returns the JSON Schema (draft 2020-12) of the form with the registry's actions, for
// editors. It accepts whatever [Load] accepts; what it cannot say, Load checks alone.
func Schema(registry *dsl.Registry) ([]byte, error) {
	s := &schemer{registry: registry}
	root := s.of(reflect.TypeFor[document]())
	root.Schema = "https://json-schema.org/draft/2020-12/schema"
	root.ID = "https://handwerk.dev/schemas/operator.v1alpha1.json"
	root.Title = "Handwerk operator"
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(root)
	return out.Bytes(), err
}

// jsonSchema has the words of JSON Schema that the form needs.
type jsonSchema struct {
	Schema      string `json:"$schema,omitempty"`
	ID          string `json:"$id,omitempty"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Default     any    `json:"default,omitempty"`

	Type  string        `json:"type,omitempty"`
	OneOf []*jsonSchema `json:"oneOf,omitempty"`

	Enum      []string `json:"enum,omitempty"`
	Pattern   string   `json:"pattern,omitempty"`
	MinLength int      `json:"minLength,omitempty"`
	Minimum   *float64 `json:"minimum,omitempty"`

	Items    *jsonSchema `json:"items,omitempty"`
	MinItems int         `json:"minItems,omitempty"`

	Properties map[string]*jsonSchema `json:"properties,omitempty"`
	Required   []string               `json:"required,omitempty"`
	// AdditionalProperties is false or a schema.
	AdditionalProperties any `json:"additionalProperties,omitempty"`
	MinProperties        int `json:"minProperties,omitempty"`
}

const durationPattern = `^\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`

// schemer describes Go types of the form.
type schemer struct {
	registry *dsl.Registry
}

// of describes a type as the decoder reads it.
func (s *schemer) of(t reflect.Type) *jsonSchema {
	if t.Kind() == reflect.Pointer {
		return s.of(t.Elem())
	}
	if f, ok := reflect.TypeAssert[form](reflect.New(t)); ok {
		return f.schema(s)
	}
	if c, ok := reflect.TypeAssert[choice](reflect.Zero(t)); ok {
		_, words := c.choices()
		out := &jsonSchema{Type: "string", Enum: words}
		if d, ok := c.(documented); ok {
			out.Description = d.doc()
		}
		return out
	}
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return &jsonSchema{Type: "string", Pattern: durationPattern}
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return &jsonSchema{}
	}
	switch t.Kind() {
	case reflect.Struct:
		return s.structure(t)
	case reflect.Slice:
		return &jsonSchema{Type: "array", Items: s.filled(t.Elem()), MinItems: 1}
	case reflect.Map:
		return &jsonSchema{Type: "object", AdditionalProperties: s.of(t.Elem())}
	case reflect.String:
		return &jsonSchema{Type: "string"}
	case reflect.Bool:
		return &jsonSchema{Type: "boolean"}
	case reflect.Float32, reflect.Float64:
		return &jsonSchema{Type: "number"}
	case reflect.Interface:
		return &jsonSchema{}
	default:
		return &jsonSchema{Type: "integer"}
	}
}

// filled is of, but text must not be empty.
func (s *schemer) filled(t reflect.Type) *jsonSchema {
	out := s.of(t)
	if t.Kind() == reflect.String && out.Type == "string" && out.Enum == nil {
		out.MinLength = 1
	}
	return out
}

func (s *schemer) structure(t reflect.Type) *jsonSchema {
	out := &jsonSchema{Type: "object", Properties: map[string]*jsonSchema{}, AdditionalProperties: false}
	names, fields := fieldsOf(t)
	for _, name := range names {
		field := fields[name]
		property := s.filled(field.Type)
		property.Description = field.Tag.Get("doc")
		if text := field.Tag.Get("default"); text != "" {
			property.Default = value(text)
		}
		if least, err := strconv.ParseFloat(field.Tag.Get("min"), 64); err == nil {
			property.Minimum = &least
		}
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

// withAction describes a struct that has exactly one of the registry's actions beside its fields,
// or steps where it has that field.
func (s *schemer) withAction(t reflect.Type) *jsonSchema {
	out := s.structure(t)
	if _, known := out.Properties[steps]; known {
		out.OneOf = append(out.OneOf, &jsonSchema{Required: []string{steps}})
	}
	for _, name := range s.registry.Actions() {
		action, _ := s.registry.LookupAction(name)
		property := s.filled(reflect.TypeOf(action.Config()).Elem())
		property.Description = action.Doc
		out.Properties[name] = property
		out.OneOf = append(out.OneOf, &jsonSchema{Required: []string{name}})
	}
	return out
}
