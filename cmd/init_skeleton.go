// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// skeleton makes objects with the required fields of a schema.
type skeleton struct {
	// notes name the fields whose values may be invalid.
	notes []string
}

// note notes a field.
func (s *skeleton) note(path, format string, args ...any) {
	s.notes = append(s.notes, strings.TrimPrefix(path, ".")+": "+fmt.Sprintf(format, args...))
}

// object returns the required fields of an object.
func (s *skeleton) object(of *apiextensions.JSONSchemaProps, path string) map[string]any {
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(of.Properties)) {
		field := of.Properties[name]
		if path == "" && (name == "metadata" || name == "apiVersion" || name == "kind" || name == "status") {
			continue
		}
		if field.Default == nil && (slices.Contains(of.Required, name) || path == "" && name == "spec") {
			out[name] = s.value(&field, path+"."+name)
		}
	}
	if len(of.XValidations)+len(of.OneOf)+len(of.AnyOf) > 0 || of.MinProperties != nil && int64(len(out)) < *of.MinProperties {
		s.note(path, "the schema has rules beside the required fields; check them")
	}
	return out
}

// value returns a value that a schema allows, as far as that can be told.
func (s *skeleton) value(of *apiextensions.JSONSchemaProps, path string) any {
	for _, given := range append(slices.Clone(of.Enum), deref(of.Example)...) {
		var value any
		if json.Unmarshal(given.Raw, &value) == nil {
			return value
		}
	}
	switch {
	case of.XIntOrString:
		return int64(1)
	case of.Type == "object":
		return s.object(of, path)
	case of.Type == "array":
		list := []any{}
		for of.MinItems != nil && int64(len(list)) < *of.MinItems && of.Items != nil && of.Items.Schema != nil {
			list = append(list, s.value(of.Items.Schema, fmt.Sprintf("%s[%d]", path, len(list))))
		}
		return list
	case of.Type == "integer", of.Type == "number":
		return number(of)
	case of.Type == "boolean":
		return false
	case of.Type == "string":
		return s.text(of, path)
	}
	return map[string]any{}
}

func deref(one *apiextensions.JSON) []apiextensions.JSON {
	if one == nil {
		return nil
	}
	return []apiextensions.JSON{*one}
}

// number returns 1, or the number nearest to it that the bounds allow.
func number(of *apiextensions.JSONSchemaProps) any {
	value, step := 1.0, 1.0
	if of.MultipleOf != nil {
		value, step = *of.MultipleOf, *of.MultipleOf
	}
	if of.Minimum != nil && value <= *of.Minimum {
		value = math.Ceil(*of.Minimum/step) * step
		if of.ExclusiveMinimum && value <= *of.Minimum {
			value += step
		}
	}
	if of.Maximum != nil && value >= *of.Maximum {
		value = math.Floor(*of.Maximum/step) * step
		if of.ExclusiveMaximum && value >= *of.Maximum {
			value -= step
		}
	}
	if of.Type == "integer" {
		return int64(value)
	}
	return value
}

// specimens are texts of the usual formats. The first one is for any text.
func specimens() []string {
	return []string{
		"example", "a", "1", "1.0.0", "v1.0.0", "1Gi", "1m", "example.com", "https://example.com", "example.com/example", "10.0.0.1", "10.0.0.0/8",
		"2030-01-01T00:00:00Z", "2030-01-01", "0 0 * * *", "user@example.com", "Example", "EXAMPLE", "00000000-0000-4000-8000-000000000000", "ZXhhbXBsZQ==",
	}
}

// formats has a text for the formats that a schema may name.
func formats() map[string]string {
	return map[string]string{
		"date-time": "2030-01-01T00:00:00Z", "date": "2030-01-01", "duration": "1m", "uri": "https://example.com", "email": "user@example.com",
		"hostname": "example.com", "ipv4": "10.0.0.1", "ipv6": "fd00::1", "cidr": "10.0.0.0/8", "uuid": "00000000-0000-4000-8000-000000000000",
		"byte": "ZXhhbXBsZQ==", "mac": "00:00:5e:00:53:01",
	}
}

// text returns a text that the schema allows, or else notes the field.
func (s *skeleton) text(of *apiextensions.JSONSchemaProps, path string) string {
	if text, known := formats()[of.Format]; known {
		return text
	}
	pattern, err := regexp.Compile(of.Pattern)
	fits := func(text string) bool {
		length := int64(len(text))
		return err == nil && pattern.MatchString(text) && (of.MinLength == nil || length >= *of.MinLength) && (of.MaxLength == nil || length <= *of.MaxLength)
	}
	for _, text := range specimens() {
		if fits(text) {
			return text
		}
	}
	if of.MinLength != nil && *of.MinLength < 1000 {
		if long := strings.Repeat("x", int(*of.MinLength)); fits(long) {
			return long
		}
	}
	s.note(path, "write a text that matches %s", of.Pattern)
	return specimens()[0]
}
