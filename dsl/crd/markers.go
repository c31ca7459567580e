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

// The groups of types that markers apply to.
const (
	classText    = "text"
	classInteger = "integers"
	classNumber  = "numbers"
	classBoolean = "booleans"
	classEither  = "int-or-string and quantity"
	classList    = "lists"
	classMap     = "maps"
	classObject  = "objects"
	classAny     = "values of any form"
)

func classOf(s *apiextensions.JSONSchemaProps) string {
	switch {
	case s.XIntOrString:
		return classEither
	case s.Type == "array":
		return classList
	case s.Type == "object" && s.AdditionalProperties != nil:
		return classMap
	case s.Type == "object":
		return classObject
	case s.Type == "integer":
		return classInteger
	case s.Type == "number":
		return classNumber
	case s.Type == "boolean":
		return classBoolean
	case s.Type == "":
		return classAny
	default:
		return classText
	}
}

// kindOfMarker says for which types a marker is, which keyword of the schema it sets, and how.
type kindOfMarker struct {
	name string
	fits []string
	// sets is the keyword of the schema, for places.
	sets string
	// many: a field may have several of it.
	many bool
	set  func(s *apiextensions.JSONSchemaProps, m *marker) error
}

// markers returns all markers, the most common ones first.
func markers() []kindOfMarker {
	numbers, texts, lists, maps := []string{classInteger, classNumber}, []string{classText}, []string{classList}, []string{classMap}
	return []kindOfMarker{
		{name: "required", sets: "required", set: boolean(func(*apiextensions.JSONSchemaProps) {})},
		{name: "default", sets: "default", set: setDefault},
		{name: "description", sets: "description", set: func(s *apiextensions.JSONSchemaProps, m *marker) error { s.Description = m.value; return nil }},
		{name: "enum", sets: "enum", fits: []string{classText, classInteger, classNumber}, set: setEnum},
		{name: "minimum", sets: "minimum", fits: numbers, set: number(func(s *apiextensions.JSONSchemaProps, n float64) { s.Minimum = &n })},
		{name: "maximum", sets: "maximum", fits: numbers, set: number(func(s *apiextensions.JSONSchemaProps, n float64) { s.Maximum = &n })},
		{name: "minLength", sets: "minLength", fits: texts, set: length(func(s *apiextensions.JSONSchemaProps, n int64) { s.MinLength = &n })},
		{name: "maxLength", sets: "maxLength", fits: texts, set: length(func(s *apiextensions.JSONSchemaProps, n int64) { s.MaxLength = &n })},
		{name: "pattern", sets: "pattern", fits: texts, set: func(s *apiextensions.JSONSchemaProps, m *marker) error { s.Pattern = m.value; return nil }},
		{name: "format", sets: "format", fits: texts, set: func(s *apiextensions.JSONSchemaProps, m *marker) error { s.Format = m.value; return nil }},
		{name: "minItems", sets: "minItems", fits: lists, set: length(func(s *apiextensions.JSONSchemaProps, n int64) { s.MinItems = &n })},
		{name: "maxItems", sets: "maxItems", fits: lists, set: length(func(s *apiextensions.JSONSchemaProps, n int64) { s.MaxItems = &n })},
		{name: "uniqueItems", sets: "x-kubernetes-list-type", fits: lists, set: boolean(func(s *apiextensions.JSONSchemaProps) { s.XListType = new("set") })},
		{name: "listType", sets: "x-kubernetes-list-type", fits: lists, set: setListType},
		{name: "listMapKey", sets: "x-kubernetes-list-map-keys", fits: lists, set: setListMapKey},
		{name: "minProperties", sets: "minProperties", fits: maps, set: length(func(s *apiextensions.JSONSchemaProps, n int64) { s.MinProperties = &n })},
		{name: "maxProperties", sets: "maxProperties", fits: maps, set: length(func(s *apiextensions.JSONSchemaProps, n int64) { s.MaxProperties = &n })},
		{name: "immutable", sets: "x-kubernetes-validations", set: boolean(setImmutable)},
		{name: "validation", sets: "x-kubernetes-validations", many: true, set: setValidation},
		{name: "message", sets: "x-kubernetes-validations", many: true, set: setMessage},
	}
}

// mark applies a field's markers. It reports whether the field is required.
func (b *builder) mark(path []string, to steps, t text, s *apiextensions.JSONSchemaProps, list []marker) (required bool) {
	given := map[string]bool{}
	for i := range list {
		m := &list[i]
		kind, wrong := b.markerFor(m, s, given)
		if wrong != "" {
			b.faultIn(path, t, m.at, wrong)
			continue
		}
		given[kind.name] = true
		if err := kind.set(s, m); err != nil {
			b.faultIn(path, t, m.places[0], err.Error())
			continue
		}
		required = required || kind.name == "required" && m.value == "true"
		at := to.to(kind.sets)
		if kind.sets == "x-kubernetes-validations" && kind.name != "message" {
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

// markerFor returns a marker's kind, or says why none fits.
func (b *builder) markerFor(m *marker, s *apiextensions.JSONSchemaProps, given map[string]bool) (kindOfMarker, string) {
	all := markers()
	at := slices.IndexFunc(all, func(k kindOfMarker) bool { return k.name == m.name })
	if at < 0 {
		var names []string
		for _, k := range all {
			names = append(names, k.name)
		}
		return kindOfMarker{}, form.Unknown("marker", m.name, names)
	}
	kind := all[at]
	if given[m.name] && !kind.many {
		return kind, "the marker " + m.name + " is there twice"
	}
	if c := classOf(s); kind.fits != nil && !slices.Contains(kind.fits, c) {
		hint := ""
		if c == classList && slices.Contains(kind.fits, classOf(s.Items.Schema)) {
			hint = "; for the elements of a list, give them a type under types"
			if b.form.from != nil {
				hint = "; for the elements of a list, give them a type with a method SchemaText"
			}
		}
		return kind, fmt.Sprintf("%s is for %s, not for %s%s", m.name, strings.Join(kind.fits, " and "), c, hint)
	}
	return kind, ""
}

func boolean(set func(*apiextensions.JSONSchemaProps)) func(*apiextensions.JSONSchemaProps, *marker) error {
	return func(s *apiextensions.JSONSchemaProps, m *marker) error {
		if m.value == "true" {
			set(s)
		}
		_, err := scalar(classBoolean, m)
		return err
	}
}

func number(set func(*apiextensions.JSONSchemaProps, float64)) func(*apiextensions.JSONSchemaProps, *marker) error {
	return func(s *apiextensions.JSONSchemaProps, m *marker) error {
		if _, err := scalar(classOf(s), m); err != nil {
			return err
		}
		n, err := strconv.ParseFloat(m.value, 64)
		set(s, n)
		return err
	}
}

func length(set func(*apiextensions.JSONSchemaProps, int64)) func(*apiextensions.JSONSchemaProps, *marker) error {
	return func(s *apiextensions.JSONSchemaProps, m *marker) error {
		n, err := strconv.ParseInt(m.value, 10, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("want an integer that is not negative, found %s", form.Quoted(m.value))
		}
		set(s, n)
		return nil
	}
}
