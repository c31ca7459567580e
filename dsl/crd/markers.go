// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/handwerk-dev/handwerk/dsl/form"
)

// Marker is a row of the table of markers.
type Marker struct {
	Name string
	// Value is the type of its value.
	Value string
	// Fits are the groups of types that it is for. Nil means every type.
	Fits []string
	// Keyword is the keyword of OpenAPI that it sets.
	Keyword string
	// Doc describes it for authors.
	Doc string

	// set checks the value and sets the keyword.
	set func(s *apiextensions.JSONSchemaProps, keyword string, m *marker) error
}

// The types of the values of markers.
const (
	valueFlag   = "true or false"
	valueText   = "text"
	valueCount  = "whole number"
	valueLike   = "as the field"
	valuesLike  = "list of values"
	valueFields = "list of fields"
)

// Keywords that several markers set.
const (
	keyRules    = "x-kubernetes-validations"
	keyListType = "x-kubernetes-list-type"
)

// Markers returns the table of markers, the most common ones first.
func Markers() []Marker {
	scalars, numbers, texts := []string{classText, classInteger, classNumber}, []string{classInteger, classNumber}, []string{classText}
	lists, maps := []string{classList}, []string{classMap}
	return []Marker{
		{"required", valueFlag, nil, "required", "The field must be given.", setFlag(nil)},
		{"default", valueLike, nil, "default", "The value if the field is absent; JSON for lists and maps.", setDefault},
		{"description", valueText, nil, "description", "A description of the field.", setKeyword},
		{"enum", valuesLike, scalars, "enum", "The allowed values, with commas between them.", setEnum},
		{"minimum", valueLike, numbers, "minimum", "The least value.", setBound},
		{"maximum", valueLike, numbers, "maximum", "The largest value.", setBound},
		{"minLength", valueCount, texts, "minLength", "The least number of characters.", setCount},
		{"maxLength", valueCount, texts, "maxLength", "The largest number of characters.", setCount},
		{"pattern", valueText, texts, "pattern", "A regular expression that the text matches.", setKeyword},
		{"format", valueText, texts, "format", "The format of the text, as in ipv4 or uuid.", setKeyword},
		{"minItems", valueCount, lists, "minItems", "The least number of elements.", setCount},
		{"maxItems", valueCount, lists, "maxItems", "The largest number of elements.", setCount},
		{"uniqueItems", valueFlag, lists, keyListType, "Elements differ; short for listType=set.", setFlag(setUnique)},
		{"listType", valueText, lists, keyListType, "How writers share the list: atomic, set or map.", setListType},
		{"listMapKey", valueFields, lists, "x-kubernetes-list-map-keys", "The fields that identify an element; they imply listType=map.", setListMapKey},
		{"minProperties", valueCount, maps, "minProperties", "The least number of entries.", setCount},
		{"maxProperties", valueCount, maps, "maxProperties", "The largest number of entries.", setCount},
		{"immutable", valueFlag, nil, keyRules, "The value cannot change.", setFlag(setImmutable)},
		{"validation", valueText, nil, keyRules, "A CEL expression that must be true of the value, self. A field may have several.", setValidation},
		{"message", valueText, nil, keyRules, "The message of the API server if the validation before it is false.", setMessage},
	}
}

// markerNamed returns the row of a marker.
func markerNamed(name string) (row Marker, known bool) {
	table := Markers()
	at := slices.IndexFunc(table, func(row Marker) bool { return row.Name == name })
	if at < 0 {
		return Marker{}, false
	}
	return table[at], true
}

// mark applies a field's markers. It reports whether the field is required.
func (b *builder) mark(path []string, to steps, t text, s *apiextensions.JSONSchemaProps, list []marker) (required bool) {
	given := map[string]bool{}
	for i := range list {
		m := &list[i]
		row, wrong := b.markerFor(m, s, given)
		if wrong != "" {
			b.faultIn(path, t, m.at, wrong)
			continue
		}
		given[row.Name] = true
		if err := row.set(s, row.Keyword, m); err != nil {
			b.faultIn(path, t, m.places[0], err.Error())
			continue
		}
		required = required || row.Name == "required" && m.value == "true"
		at := to.to(row.Keyword)
		if row.Keyword == keyRules && row.Name != "message" {
			at = at.to(strconv.Itoa(len(s.XValidations) - 1))
		}
		b.places[at.key()] = place{path: path, text: t, at: m.places}
	}
	b.markSet(path, t, s, list, given["listType"])
	return required
}

// markSet checks the marker that makes a list a set.
func (b *builder) markSet(path []string, t text, s *apiextensions.JSONSchemaProps, list []marker, typed bool) {
	for _, m := range list {
		switch set := s.XListType != nil && *s.XListType == "set"; {
		case m.name == "uniqueItems" && typed:
			b.faultIn(path, t, m.at, "uniqueItems is short for listType=set, and excludes listType")
		case set && (m.name == "uniqueItems" || m.name == "listType") && s.Items.Schema.Type == "object":
			b.faultIn(path, t, m.at, "the elements of a set are single values, not objects (for objects, say which field identifies them: listMapKey=…)")
			s.XListType = nil
		}
	}
}

// markerFor returns a marker's row, or says why the marker cannot be here.
func (b *builder) markerFor(m *marker, s *apiextensions.JSONSchemaProps, given map[string]bool) (row Marker, wrong string) {
	row, known := markerNamed(m.name)
	if !known {
		var names []string
		for _, row := range Markers() {
			names = append(names, row.Name)
		}
		return row, form.Unknown("marker", m.name, names)
	}
	if given[m.name] && m.name != "validation" && m.name != "message" {
		return row, "the marker " + m.name + " is there twice"
	}
	if c := classOf(s); row.Fits != nil && !slices.Contains(row.Fits, c) {
		hint := ""
		if c == classList && slices.Contains(row.Fits, classOf(s.Items.Schema)) {
			hint = "; for the elements of a list, give them a type under types"
			if b.form.from != nil {
				hint = "; for the elements of a list, give them a type with a method SchemaText"
			}
		}
		return row, fmt.Sprintf("%s is for %s, not for %s%s", m.name, strings.Join(row.Fits, " and "), c, hint)
	}
	return row, ""
}
