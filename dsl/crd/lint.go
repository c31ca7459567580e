// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/handwerk-dev/handwerk/dsl/form"
)

// formats are the formats that the API server checks. It ignores others, so they are mistakes.
var formats = []string{
	"date", "date-time", "duration", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3",
	"uuid4", "uuid5", "byte", "password", "hexcolor", "rgbcolor", "isbn", "isbn10", "isbn13", "creditcard", "ssn",
	"bsonobjectid", "datetime", "k8s-short-name", "k8s-long-name",
}

// typeWords are the types of a schema.
var typeWords = []string{"array", "boolean", "integer", "number", "object", "string"}

// lint notes, at s and below, mistakes that the API server accepts, and faults for which its code cannot be
// imported.
func (b *builder) lint(at steps, s *apiextensions.JSONSchemaProps) {
	b.contradictions(at, s)
	b.unsupported(at, s)
	b.lists(at, s)
	b.ruleTexts(at, s)
	if s.Type == "string" && s.Format != "" && !slices.Contains(formats, s.Format) {
		b.faultAt(at.to("format"), form.Unknown("format", s.Format, formats))
	}
	if _, err := regexp.Compile(s.Pattern); err != nil {
		b.faultAt(at.to("pattern"), "the pattern cannot be read: "+strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	for _, name := range s.Required {
		if next, open := child(s, name); next == nil && !open && len(s.Properties) > 0 {
			b.faultAt(at.to("required"), form.Unknown("required field", name, propertiesOf(s)))
		}
	}
	for _, name := range propertiesOf(s) {
		p := s.Properties[name]
		b.lint(at.to("properties", name), &p)
	}
	if s.Items != nil && s.Items.Schema != nil {
		b.lint(at.to("items"), s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		b.lint(at.to("additionalProperties"), s.AdditionalProperties.Schema)
	}
}

// contradictions notes pairs of bounds that exclude every value.
func (b *builder) contradictions(at steps, s *apiextensions.JSONSchemaProps) {
	if s.Minimum != nil && s.Maximum != nil && *s.Minimum > *s.Maximum {
		b.faultAt(at.to("minimum"), "the minimum is above the maximum")
	}
	for _, bounds := range []struct {
		least, most *int64
		word        string
	}{
		{s.MinLength, s.MaxLength, "Length"}, {s.MinItems, s.MaxItems, "Items"}, {s.MinProperties, s.MaxProperties, "Properties"},
	} {
		if bounds.least != nil && bounds.most != nil && *bounds.least > *bounds.most {
			b.faultAt(at.to("min"+bounds.word), "min"+bounds.word+" is above max"+bounds.word)
		}
	}
}

// unsupported notes keywords of OpenAPI that a CRD cannot have. There are no markers for them.
func (b *builder) unsupported(at steps, s *apiextensions.JSONSchemaProps) {
	if s.Type != "" && !slices.Contains(typeWords, s.Type) {
		b.faultAt(at.to("type"), "unknown value "+form.Quoted(s.Type)+" (want one of "+strings.Join(typeWords, ", ")+")")
	}
	for _, word := range []struct {
		is   bool
		name string
	}{
		{s.Ref != nil, "$ref"}, {s.ID != "", "id"}, {s.AdditionalItems != nil, "additionalItems"},
		{len(s.PatternProperties) > 0, "patternProperties"}, {len(s.Definitions) > 0, "definitions"},
		{s.Dependencies != nil, "dependencies"},
	} {
		if word.is {
			b.faultAt(at.to(word.name), word.name+" is not supported")
		}
	}
	if s.UniqueItems {
		b.faultAt(at.to("uniqueItems"), "uniqueItems is not supported (want x-kubernetes-list-type: set)")
	}
}

// ruleTexts notes rules and messages with invalid texts.
func (b *builder) ruleTexts(at steps, s *apiextensions.JSONSchemaProps) {
	for i, rule := range s.XValidations {
		at := at.to("x-kubernetes-validations", strconv.Itoa(i))
		text, message := strings.TrimSpace(rule.Rule), strings.TrimSpace(rule.Message)
		switch {
		case text == "":
			b.faultAt(at.to("rule"), "the rule is empty")
		case rule.Message != "" && message == "":
			b.faultAt(at.to("message"), "the message is empty")
		case strings.ContainsAny(message, "\n\r"):
			b.faultAt(at.to("message"), "a message is one line")
		case strings.ContainsAny(text, "\n\r") && message == "":
			b.faultAt(at.to("rule"), "a rule of several lines needs a message")
		}
	}
}

// lists notes faults in the keys of list elements.
func (b *builder) lists(at steps, s *apiextensions.JSONSchemaProps) {
	kind := ""
	if s.XListType != nil {
		kind = *s.XListType
	}
	if s.Items == nil || s.Items.Schema == nil {
		return // the API server's code reports a list without a type; the rest is not a list
	}
	items := s.Items.Schema
	switch kind {
	case "set":
		if list := items.XListType; items.Type == "array" && list != nil && *list != "atomic" {
			b.faultAt(at.to("x-kubernetes-list-type"), "lists in a set are compared as a whole: theirs must be listType=atomic")
		}
		if fields := items.XMapType; items.Type == "object" && (fields == nil || *fields != "atomic") {
			b.faultAt(at.to("x-kubernetes-list-type"), "the elements of a set are single values, not objects")
		}
	case "map":
		b.listKeys(at, s, items)
	}
	if kind != "map" && len(s.XListMapKeys) > 0 {
		b.faultAt(at.to("x-kubernetes-list-map-keys"), "a list with keys must be listType=map")
	}
}

// listKeys checks the keys of a list of type map.
func (b *builder) listKeys(at steps, s, items *apiextensions.JSONSchemaProps) {
	if len(s.XListMapKeys) == 0 {
		b.faultAt(at.to("x-kubernetes-list-type"), "a list of listType=map needs a key (listMapKey=…)")
	}
	if items.Type != "object" {
		b.faultAt(at.to("x-kubernetes-list-type"), "listType=map is for lists of objects")
		return
	}
	for i, key := range s.XListMapKeys {
		p, has := items.Properties[key]
		switch {
		case !has:
			b.faultAt(at.to("x-kubernetes-list-map-keys"), form.Unknown("field", key, propertiesOf(items)))
		case slices.Contains(s.XListMapKeys[:i], key):
			b.faultAt(at.to("x-kubernetes-list-map-keys"), "the key "+form.Quoted(key)+" is there twice")
		case p.Type == "array" || p.Type == "object":
			b.faultAt(at.to("x-kubernetes-list-map-keys"), "the key "+form.Quoted(key)+" must be a single value")
		case p.Default == nil && !slices.Contains(items.Required, key):
			b.faultAt(at.to("items", "properties", key, "default"), "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property")
		}
	}
}
