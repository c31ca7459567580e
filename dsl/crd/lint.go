// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"regexp"
	"slices"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// formats are those that the API server heeds. It ignores others, so they are mistakes.
var formats = []string{
	"date", "date-time", "duration", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3",
	"uuid4", "uuid5", "byte", "password", "hexcolor", "rgbcolor", "isbn", "isbn10", "isbn13", "creditcard", "ssn",
	"bsonobjectid", "datetime", "k8s-short-name", "k8s-long-name",
}

// lint notes what the API server accepts and what yet is a mistake, at s and below.
func (b *builder) lint(at steps, s *apiextensions.JSONSchemaProps) {
	b.contradictions(at, s)
	if s.Type == "string" && s.Format != "" && !slices.Contains(formats, s.Format) {
		b.faultAt(at.to("format"), unknown("format", s.Format, formats))
	}
	if _, err := regexp.Compile(s.Pattern); err != nil {
		b.faultAt(at.to("pattern"), "the pattern cannot be read: "+strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	for _, name := range s.Required {
		if next, open := child(s, name); next == nil && !open && len(s.Properties) > 0 {
			b.faultAt(at.to("required"), unknown("required field", name, propertiesOf(s)))
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

// contradictions notes bounds between which there is nothing.
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
