// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl/form"
)

// Schema is what an author says of a resource. The doc tags are its reference.
type Schema struct {
	Kind            string   `yaml:"kind" required:"true" doc:"What an object is, in CamelCase, as in WebApp."`
	Scope           Scope    `yaml:"scope" default:"Namespaced" doc:"Whether objects live in namespaces."`
	ListKind        string   `yaml:"listKind" doc:"What a list of objects is. By default the kind with List behind it."`
	Singular        string   `yaml:"singular" doc:"The resource's name for one object. By default the kind in lower case."`
	ShortNames      []string `yaml:"shortNames" doc:"Short names for kubectl."`
	Categories      []string `yaml:"categories" doc:"Names of groups of resources for kubectl, such as all."`
	Spec            Fields   `yaml:"spec" doc:"The fields of spec. A field is its type and, behind a bar, markers, as in integer | default=1 minimum=1; an object is a map of fields. Types: string, integer, number, boolean, date, datetime, quantity, int-or-string, object (of any form), []T, map[string]T and those under types. Markers: required, default, description, enum, minimum, maximum, minLength, maxLength, pattern, format, minItems, maxItems, uniqueItems, listType, listMapKey, minProperties, maxProperties, immutable, validation (a CEL expression) and its message."`
	Status          Fields   `yaml:"status" doc:"The fields of status, in the form of spec. Conditions are among them always."`
	Types           Fields   `yaml:"types" doc:"Types by name, in the form of fields, for spec, status and each other."`
	OpenAPIV3Schema *OpenAPI `yaml:"openAPIV3Schema" doc:"The schema of the whole object in the form of Kubernetes, instead of spec, status and types."`
	Columns         []Column `yaml:"columns" doc:"What kubectl get shows beside the name. The age is added when it is not among them."`
	// ObservedGeneration adds the field of this name to a status in short form.
	ObservedGeneration bool `yaml:"-"`
}

// Column is a column of kubectl get.
type Column struct {
	Name        string       `yaml:"name" required:"true" doc:"The heading."`
	Path        string       `yaml:"path" required:"true" doc:"Where the value is, as in .status.url."`
	Type        ColumnType   `yaml:"type" doc:"What the value is. By default what the schema says."`
	Description string       `yaml:"description" doc:"What the column tells."`
	Format      ColumnFormat `yaml:"format" doc:"More of the type, as in OpenAPI."`
	Priority    int          `yaml:"priority" doc:"Above 0, only -o wide shows the column."`
}

type (
	// Scope says whether objects live in namespaces.
	Scope string
	// ColumnType is what the values of a column are.
	ColumnType string
	// ColumnFormat is one that the API server takes for a column.
	ColumnFormat string
)

// Choices are the scopes, the first by default.
func (Scope) Choices() (string, []string) { return "scope", []string{"Namespaced", "Cluster"} }

// Choices are what a column can be.
func (ColumnType) Choices() (string, []string) {
	return "column type", []string{"string", "integer", "number", "boolean", "date"}
}

// Choices are the formats.
func (ColumnFormat) Choices() (string, []string) {
	return "column format", []string{"int32", "int64", "float", "double", "byte", "date", "date-time", "password"}
}

// Fields are fields in short form, by name.
type Fields map[string]Field

// Field is a field in short form: its type and markers, or an object with fields. The zero value is one
// that is at fault.
type Field struct {
	text   *string
	object Fields
}

// ReadForm reads the fields, and those within them.
func (f *Fields) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	fields := Fields{}
	isMap := d.Entries(at, n, func(name string, at form.Path, value *yaml.Node) {
		var field Field
		switch {
		case value.Kind == yaml.MappingNode:
			d.Value(at, value, &field.object)
		case form.IsText(value):
			d.Value(at, value, &field.text)
		case value.Kind == yaml.SequenceNode:
			d.FaultAt(value, at, `want a type or a map of fields, found a list (a list of text is "[]string")`)
		default:
			d.FaultAt(value, at, `want a type or a map of fields, found %s (as in "integer | default=1")`, form.Found(value))
		}
		fields[name] = field
	})
	if isMap {
		*f = fields
	}
	return isMap
}

// DescribeForm describes the fields, and those within them.
func (f *Fields) DescribeForm(d *form.Describer) *form.Schema {
	return d.Define("fields", func() *form.Schema {
		fields := &form.Schema{Type: "object"}
		fields.AdditionalProperties = &form.Schema{OneOf: []*form.Schema{{Type: "string", MinLength: 1}, f.DescribeForm(d)}}
		return fields
	})
}
