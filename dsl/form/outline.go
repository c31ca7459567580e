// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package form

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Outline is what people read about a form: the fields of its maps, by their places. A place is a path for all values
// of a kind: lists have [] behind their names, and <name> stands for each key of a map that has free keys.
type Outline struct{ root *Schema }

// NewOutline returns the outline of a form, as [Describe] returns it.
func NewOutline(root *Schema) *Outline { return &Outline{root} }

// Field is a field of a form, or the form as a whole.
type Field struct {
	// Place is where the field stands; empty for the form as a whole.
	Place string
	// Name is the key of the field; empty for the form as a whole and for a value under a free key.
	Name string
	// Type describes the values, as in "list of maps".
	Type string
	// Required: a map without the field has a fault.
	Required bool
	// Default is the default as it would be written; empty for none.
	Default string
	// Doc is the description. It is empty only in forms of others.
	Doc string
	// Words describes the words of a list that may have only a few; empty for other values.
	Words string
	// In is as [Schema.In].
	In []string

	schema *Schema
	// within are the names of the definitions around the field.
	within []string
}

// Block is a map with fields.
type Block struct {
	// Place is where the map stands; empty for the whole form.
	Place string
	// Title tells apart two maps that may stand at one place; empty for most.
	Title string
	// Fields are the fields, required ones first.
	Fields []Field

	schema *Schema
}

// Whole returns the form as a whole.
func (o *Outline) Whole() Field {
	return Field{Type: typeOf(o.root), Doc: o.root.Description, schema: o.root}
}

// Blocks returns the maps with fields that the values of a field are, or have in lists or under free keys. They end
// where a form contains itself.
func (o *Outline) Blocks(f Field) []Block { return o.blocks(f.Place, f.schema, f.within) }

func (o *Outline) blocks(place string, s *Schema, within []string) (out []Block) {
	if name, is := s.definition(); is {
		if slices.Contains(within, name) {
			return nil
		}
		return o.blocks(place, o.root.Defs[name], append(slices.Clip(within), name))
	}
	if len(s.Properties) > 0 {
		return []Block{block(place, s, within)}
	}
	add := func(place string, s *Schema) {
		for _, b := range o.blocks(place, s, within) {
			if !slices.ContainsFunc(out, func(other Block) bool { return other.schema == b.schema }) {
				out = append(out, b)
			}
		}
	}
	if s.Items != nil {
		add(place+"[]", s.Items)
	}
	if entries, is := s.AdditionalProperties.(*Schema); is {
		add(underKey(place), entries)
	}
	for _, one := range s.OneOf {
		add(place, one)
	}
	return out
}

// definition returns the name of the schema that this one refers to.
func (s *Schema) definition() (name string, is bool) { return strings.CutPrefix(s.Ref, definitions) }

// underKey returns the place of the values of a map with free keys.
func underKey(place string) string { return strings.TrimPrefix(place+"."+anyKey, ".") }

func block(place string, s *Schema, within []string) Block {
	out := Block{Place: place, Title: s.Title, schema: s}
	for _, name := range s.ordered() {
		field := s.Properties[name]
		one := Field{
			Place: strings.TrimPrefix(place+"."+name, "."), Name: name, Type: typeOf(field), Doc: field.Description,
			Required: slices.Contains(s.Required, name), Default: defaultOf(field), In: field.In, schema: field, within: within,
		}
		if field.Items != nil && len(field.Items.Enum) > 0 {
			one.Words = field.Items.Description
		}
		out.Fields = append(out.Fields, one)
	}
	return out
}

// ordered returns the names of the properties in the order for people, required ones first.
func (s *Schema) ordered() []string {
	names := slices.DeleteFunc(slices.Clone(s.Order), func(name string) bool { return s.Properties[name] == nil })
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	rank := func(name string) int { return map[bool]int{true: 0, false: 1}[slices.Contains(s.Required, name)] }
	slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
	return names
}

// Foreign reports whether the map is of another API, whose fields have no descriptions here.
func (b Block) Foreign() bool {
	return !slices.ContainsFunc(b.Fields, func(f Field) bool { return f.Doc != "" })
}

// Part reports whether another map has all fields of this one, as people read about them, and perhaps more.
func (b Block) Part(other Block) bool {
	for _, field := range b.Fields {
		same := func(f Field) bool {
			return f.Name == field.Name && f.Type == field.Type && f.Required == field.Required && f.Default == field.Default && f.Doc == field.Doc
		}
		if !slices.ContainsFunc(other.Fields, same) {
			return false
		}
	}
	return true
}

// defaultOf returns the default of a field as it would be written.
func defaultOf(s *Schema) string {
	if s.Default == nil {
		return ""
	}
	data, _ := json.Marshal(s.Default) // the default came from JSON
	return strings.Trim(string(data), `"`)
}

// typeOf describes the values of a form for people.
func typeOf(s *Schema) string {
	switch {
	case s.Called != "":
		return s.Called
	case len(s.Enum) > 0:
		return strings.Join(s.Enum, ", ")
	case s.Pattern == durationPattern:
		return "duration"
	case s.Type == "array" && len(s.Items.Enum) > 0:
		return "list of " + typeOf(s.Items)
	case s.Type == "array":
		return "list of " + plural(typeOf(s.Items))
	case s.Ref != "" || len(s.Properties) > 0:
		return "map"
	case s.Type == "object":
		if value, ok := s.AdditionalProperties.(*Schema); ok && value.Type != "" {
			return "map of " + plural(typeOf(value))
		}
		return "map"
	case len(s.OneOf) > 0:
		var forms []string
		for _, one := range s.OneOf {
			forms = append(forms, strings.Split(typeOf(one), " or ")...)
		}
		last := len(forms) - 1
		return strings.Join(forms[:last], ", ") + " or " + forms[last]
	}
	words := map[string]string{"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false", "null": "null", "": "anything"}
	return words[s.Type]
}

// plural returns the word for several values of a type.
func plural(of string) string {
	switch of {
	case "text", "anything", "true or false":
		return of
	}
	return strings.Replace(of+"s", "list of texts", "lists of text", 1)
}
