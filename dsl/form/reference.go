// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package form

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Reference writes tables as Markdown: of every field at a place and below it, one for each map that has
// fields, headed by its place.
func Reference(out *strings.Builder, place string, s *Schema) {
	title := place
	if title == "" {
		title = "the document"
	}
	fmt.Fprintf(out, "\n### `%s`\n\n| field | form | default | meaning |\n|---|---|---|---|\n", title)
	names := slices.SortedFunc(maps.Keys(s.Properties), func(a, b string) int {
		required := func(name string) int {
			if slices.Contains(s.Required, name) {
				return 0
			}
			return 1
		}
		if d := required(a) - required(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		field := s.Properties[name]
		fallback := ""
		if field.Default != nil {
			data, _ := json.Marshal(field.Default) // it came from JSON
			fallback = "`" + strings.Trim(string(data), `"`) + "`"
		}
		if slices.Contains(s.Required, name) {
			fallback = "required"
		}
		fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n", name, formOf(field), fallback, strings.ReplaceAll(field.Description, "|", "\\|"))
	}
	for _, name := range names {
		at := strings.TrimPrefix(place+"."+name, ".")
		field := s.Properties[name]
		if field.Items != nil {
			at, field = at+"[]", field.Items
		}
		if len(field.Properties) > 0 {
			Reference(out, at, field)
		}
	}
}

// formOf says for people what a value looks like.
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
	case len(s.Properties) > 0:
		return "map"
	case s.Type == "object":
		if value, ok := s.AdditionalProperties.(*Schema); ok && value.Type != "" {
			return "map of " + plural(formOf(value))
		}
		return "map"
	case len(s.OneOf) > 0:
		var forms []string
		for _, one := range s.OneOf {
			forms = append(forms, formOf(one))
		}
		return strings.Join(forms, " or ")
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
