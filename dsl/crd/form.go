// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl/form"
)

// Schema is an author's description of a resource. The doc tags are its reference.
type Schema struct {
	Kind            string    `yaml:"kind" required:"true" doc:"The kind of the objects, in CamelCase, as in WebApp."`
	Scope           Scope     `yaml:"scope" default:"Namespaced" doc:"Whether objects are in namespaces, or in the cluster as a whole."`
	ListKind        string    `yaml:"listKind" doc:"The kind of a list of objects. Default: the kind with List behind it."`
	Singular        string    `yaml:"singular" doc:"The resource's name for one object. Default: the kind in lower case."`
	ShortNames      []string  `yaml:"shortNames" doc:"Short names of the resource for kubectl, as in wa."`
	Categories      []string  `yaml:"categories" doc:"Groups of resources for kubectl get that the resource belongs to, such as all."`
	Spec            Fields    `yaml:"spec" doc:"The fields of spec. A field is its type and, behind a bar, markers, as in integer | default=1 minimum=1; an object is a map of fields. Types: string, integer, number, boolean, date, datetime, quantity, int-or-string, object (of any form), []T, map[string]T and those under types. Markers: required, default, description, enum, minimum, maximum, minLength, maxLength, pattern, format, minItems, maxItems, uniqueItems, listType, listMapKey, minProperties, maxProperties, immutable, validation (a CEL expression) and its message."`
	Status          Fields    `yaml:"status" doc:"The fields of status, in the form of spec. Conditions are always among them."`
	Types           Fields    `yaml:"types" doc:"Types by name, in the form of fields, for spec, status and each other."`
	Validation      []Rule    `yaml:"validation" doc:"Rules over the whole object, which the API server checks. A rule over one field is its marker validation."`
	OpenAPIV3Schema *OpenAPI  `yaml:"openAPIV3Schema" doc:"The schema of the whole object in the form that CRDs have, instead of spec, status and types."`
	Columns         []Column  `yaml:"columns" doc:"The columns that kubectl get shows beside the name. The age is added if it is not among them."`
	Versions        []Version `yaml:"versions" doc:"Further versions of the resource. The operator converts objects between them and the resource's own version, if their schemas differ."`
	Storage         string    `yaml:"storage" doc:"The version in which the API server stores objects. Default: the resource's own. After a change, operator migrate rewrites the objects that are stored."`
	// Machines are the names of the resource's machines; one may be empty. The fields of their progress are added to a
	// status in short form.
	Machines []string `yaml:"-"`
	// Service is the Service by which the API server reaches the operator that converts objects, until the operator says where
	// it is. Conversions are the versions that functions in Go convert.
	Service     types.NamespacedName `yaml:"-"`
	Conversions []string             `yaml:"-"`

	// from is the Go type that replaces spec, status and types.
	from reflect.Type
}

// Rule is a rule that the API server checks when an object is created or changed.
type Rule struct {
	Rule    string `yaml:"rule" required:"true" doc:"A CEL expression that must be true of the object, self, as in self.spec.min <= self.spec.max. A rule that reads oldSelf is checked when an object is changed."`
	Message string `yaml:"message" doc:"What the API server says of an object for which the rule is false. Absent: the rule."`
}

// Column is a column of kubectl get.
type Column struct {
	Name        string       `yaml:"name" required:"true" doc:"The heading of the column."`
	Path        string       `yaml:"path" required:"true" doc:"The field that the column shows, as in .status.url."`
	Type        ColumnType   `yaml:"type" doc:"The type of the value. Default: the type in the schema."`
	Description string       `yaml:"description" doc:"What the column shows."`
	Format      ColumnFormat `yaml:"format" doc:"The format of the type, as in OpenAPI."`
	Priority    int          `yaml:"priority" default:"0" doc:"Columns with a priority above 0 are shown by -o wide alone."`
}

type (
	// Scope says whether objects are namespaced.
	Scope string
	// ColumnType is the type of a column's values.
	ColumnType string
	// ColumnFormat is the format of a column's values.
	ColumnFormat string
)

// Choices returns the scopes, the default first.
func (Scope) Choices() (string, []string) { return "scope", []string{"Namespaced", "Cluster"} }

// Choices returns the types of columns.
func (ColumnType) Choices() (string, []string) {
	return "column type", []string{"string", "integer", "number", "boolean", "date"}
}

// Choices returns the formats of columns.
func (ColumnFormat) Choices() (string, []string) {
	return "column format", []string{"int32", "int64", "float", "double", "byte", "date", "date-time", "password"}
}

// Fields are fields in short form, by name.
type Fields map[string]Field

// Field is a field in short form: its type and markers, or an object with fields. The zero value is a field with a
// fault.
type Field struct {
	text   *string
	object Fields
}

// ReadForm reads the fields, and those within them.
func (f *Fields) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	fields := Fields{}
	rests := map[*yaml.Node]bool{}
	isMap := d.Entries(at, n, func(name string, at form.Path, value *yaml.Node) {
		var field Field
		whole, cut := uncut(n, value)
		switch {
		case rests[value]:
			return
		case len(cut) > 0:
			d.FaultAt(value, at.Parent(), "within {…} a comma ends a text in YAML: put all of it in quotes, as in '%s'", whole)
			for _, rest := range cut {
				rests[rest] = true
			}
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

// endsOpen matches a text that a comma has cut: its last marker has several values.
var endsOpen = regexp.MustCompile(`\benum=[^"'\s]+$`)

// uncut restores a text that YAML has cut at its commas, within a map in {…}. It also returns the missing values of
// the keys that are the rest of the text.
func uncut(n, value *yaml.Node) (whole string, rests []*yaml.Node) {
	odd := func(quote string) bool { return strings.Count(value.Value, quote)%2 == 1 }
	i := slices.Index(n.Content, value)
	if n.Style&yaml.FlowStyle == 0 || i < 0 || value.Style != 0 || !odd(`"`) && !odd("'") && !endsOpen.MatchString(value.Value) {
		return "", nil
	}
	whole = value.Value
	for ; i+2 < len(n.Content) && form.IsNull(n.Content[i+2]); i += 2 {
		whole += "," + n.Content[i+1].Value
		rests = append(rests, n.Content[i+2])
	}
	return whole, rests
}

// DescribeForm describes the fields, and those within them.
func (f *Fields) DescribeForm(d *form.Describer) *form.Schema {
	return d.Define("fields", func() *form.Schema {
		fields := &form.Schema{Type: "object"}
		fields.AdditionalProperties = &form.Schema{OneOf: []*form.Schema{{Type: "string", MinLength: 1}, f.DescribeForm(d)}}
		return fields
	})
}

// OpenAPI is the schema of a whole object in the form of Kubernetes.
type OpenAPI struct {
	// props is nil when the schema has a fault.
	props *apiextensions.JSONSchemaProps
}

// ReadForm reads the keywords of a schema in a CRD.
func (o *OpenAPI) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	within, props := *d, &apiextensions.JSONSchemaProps{}
	within.Foreign, within.Faults = kubernetes(), nil
	within.Value(at, n, props)
	if len(within.Faults) == 0 {
		o.props = props
	}
	d.Faults = append(d.Faults, within.Faults...)
	return true
}

// DescribeForm describes these keywords.
func (o *OpenAPI) DescribeForm(d *form.Describer) *form.Schema {
	within := *d
	within.Foreign = kubernetes()
	return within.Of(reflect.TypeFor[apiextensions.JSONSchemaProps]())
}

// kubernetes returns the forms of types of the Kubernetes API that read themselves from JSON, and would therefore
// accept unknown keywords.
func kubernetes() *form.Foreign {
	return &form.Foreign{Stray: "fields of an object stand under properties", Form: func(value any) form.Form {
		switch v := value.(type) {
		case *apiextensions.JSONSchemaProps:
			return words{v}
		case *apiextensions.JSON:
			return anyValue{v}
		case **apiextensions.JSON:
			*v = &apiextensions.JSON{}
			return anyValue{*v}
		case *apiextensions.JSONSchemaPropsOrBool:
			v.Allows = true // besides a schema
			return either{"!!bool", &v.Allows, &v.Schema}
		case *apiextensions.JSONSchemaPropsOrArray:
			return either{"!!seq", &v.JSONSchemas, &v.Schema}
		case *apiextensions.JSONSchemaPropsOrStringArray:
			return either{"!!seq", &v.Property, &v.Schema}
		}
		return nil
	}}
}

// words reads and describes the keywords of a schema. It is a type of its own because some keywords contain schemas: the
// description refers to itself.
type words struct{ *apiextensions.JSONSchemaProps }

// ReadForm reads them.
func (w words) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	return d.Struct(at, n, w.JSONSchemaProps, nil)
}

// DescribeForm describes them once.
func (w words) DescribeForm(d *form.Describer) *form.Schema {
	return d.Define("openAPIV3Schema", func() *form.Schema { return d.Struct(reflect.TypeFor[apiextensions.JSONSchemaProps]()) })
}

// anyValue is a value of any form.
type anyValue struct{ *apiextensions.JSON }

// ReadForm reads it.
func (a anyValue) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	value, ok := d.Plain(at, n)
	a.Raw, _ = json.Marshal(value) // the value came from JSON
	return ok
}

// DescribeForm describes nothing.
func (a anyValue) DescribeForm(*form.Describer) *form.Schema { return &form.Schema{} }

// either is a value with a tag of YAML, or else a schema.
type either struct {
	tag    string
	other  any
	schema **apiextensions.JSONSchemaProps
}

// ReadForm reads one of the two.
func (e either) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	if n.Tag == e.tag {
		return d.Value(at, n, e.other)
	}
	return d.Value(at, n, e.schema)
}

// DescribeForm describes both.
func (e either) DescribeForm(d *form.Describer) *form.Schema {
	return &form.Schema{OneOf: []*form.Schema{d.Of(reflect.TypeOf(e.other).Elem()), d.Of(reflect.TypeOf(e.schema).Elem())}}
}
