// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package form

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Reference writes Markdown tables of every field at a place and below it: one for each map with fields, headed by
// its place. It refers to an earlier place for a form that it has already written.
func Reference(out *strings.Builder, place string, s *Schema) {
	(&reference{out: out, first: map[string]string{}}).table(place, s)
}

type reference struct {
	out *strings.Builder
	// first is the first place of a schema, by its text.
	first map[string]string
}

func (r *reference) table(place string, s *Schema) {
	title, suffix, bare := cmp.Or(place, "the document"), "", *s
	if s.Title != "" {
		suffix = ": " + s.Title
	}
	fmt.Fprintf(r.out, "\n### `%s`%s\n\n", title, suffix)
	bare.Title, bare.Description, bare.Not = "", "", nil
	text, _ := json.Marshal(bare) // a schema always marshals
	if first, again := r.first[string(text)]; again {
		fmt.Fprintf(r.out, "As `%s`.\n", first)
		return
	}
	r.first[string(text)] = title
	r.out.WriteString("| field | form | default | meaning |\n|---|---|---|---|\n")
	names := slices.SortedFunc(maps.Keys(s.Properties), func(a, b string) int {
		if first := slices.Contains(s.Required, a); first != slices.Contains(s.Required, b) {
			return map[bool]int{true: -1, false: 1}[first]
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		field := s.Properties[name]
		fmt.Fprintf(r.out, "| `%s` | %s | %s | %s |\n",
			name, formOf(field), fallback(field, slices.Contains(s.Required, name)), strings.ReplaceAll(field.Description, "|", "\\|"))
	}
	for _, name := range names {
		r.below(strings.TrimPrefix(place+"."+name, "."), s.Properties[name])
	}
}

// below writes the tables of maps inside a value.
func (r *reference) below(place string, s *Schema) {
	if len(s.Properties) > 0 {
		r.table(place, s)
		return
	}
	if s.Items != nil {
		r.below(place+"[]", s.Items)
	}
	if entries, is := s.AdditionalProperties.(*Schema); is {
		r.below(place+".<name>", entries)
	}
	for _, one := range s.OneOf {
		r.below(place, one)
	}
}

// fallback describes the default of a field.
func fallback(s *Schema, required bool) string {
	switch {
	case required:
		return "required"
	case s.Default == nil:
		return ""
	}
	data, _ := json.Marshal(s.Default) // the default came from JSON
	return "`" + strings.Trim(string(data), `"`) + "`"
}

// formOf describes a value's form for people.
func formOf(s *Schema) string {
	switch {
	case len(s.Enum) > 0:
		return strings.Join(s.Enum, ", ")
	case s.Pattern == durationPattern:
		return "duration"
	case s.Type == "array" && len(s.Items.Enum) > 0:
		return "list of " + formOf(s.Items)
	case s.Type == "array":
		return "list of " + plural(formOf(s.Items))
	case s.Ref != "" || len(s.Properties) > 0:
		return "map"
	case s.Type == "object":
		if value, ok := s.AdditionalProperties.(*Schema); ok && value.Type != "" {
			return "map of " + plural(formOf(value))
		}
		return "map"
	case len(s.OneOf) > 0:
		var forms []string
		for _, one := range s.OneOf {
			forms = append(forms, strings.Split(formOf(one), " or ")...)
		}
		last := len(forms) - 1
		return strings.Join(forms[:last], ", ") + " or " + forms[last]
	}
	words := map[string]string{"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false", "": "anything"}
	return words[s.Type]
}

func plural(form string) string {
	switch form {
	case "text", "anything", "true or false":
		return form
	}
	return strings.Replace(form+"s", "list of texts", "lists of text", 1)
}
