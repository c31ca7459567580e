// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/crd"
	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// TestFaultsOfAField has the column of each fault, and a part of what is said.
func TestFaultsOfAField(t *testing.T) {
	tests := map[string]struct {
		field  string
		column int
		want   string
	}{
		"an unknown type":                         {`integr`, 1, `unknown type "integr" (did you mean "integer"?)`},
		"a type of another language":              {`int | default=1`, 1, `did you mean "integer"?`},
		"a type like none":                        {`  frobnicate`, 3, "want one of string, integer"},
		"a type in a list":                        {`[] Usr`, 4, `did you mean "User"?`},
		"a type in a map":                         {`map[string]strin`, 12, `did you mean "string"?`},
		"a map with other keys":                   {`map[integer]string`, 1, "the keys of a map are text"},
		"no type":                                 {`| default=1`, 1, "want a type"},
		"no type in a list":                       {`[]`, 3, "want a type"},
		"an unknown marker":                       {`integer | minimun=1`, 11, `unknown marker "minimun" (did you mean "minimum"?)`},
		"a marker without a value":                {`string | required`, 10, "want required=true"},
		"a marker with an empty value":            {`string | default= minLength=1`, 18, "has an empty value"},
		"an invalid marker":                       {`string | =1`, 10, "want a marker"},
		"a quote that does not end":               {`string | description="use`, 22, "has no closing quote"},
		"a bracket that does not end":             {`[]string | default=["a"`, 20, "has no closing bracket"},
		"markers without a space":                 {`string | default="a"minLength=1`, 21, "want a space between markers"},
		"a marker twice":                          {`string | minLength=1 minLength=2`, 22, "minLength is there twice"},
		"a bound of text for a number":            {`integer | minLength=1`, 11, "minLength is for text, not for integers"},
		"a bound of a number for text":            {`string | minimum=1`, 10, "minimum is for integers and numbers, not for text"},
		"an enum of lists":                        {`[]string | enum="a,b"`, 12, "give them a type under types"},
		"an enum with an empty value":             {`string | enum="a,,b"`, 16, "found an empty one"},
		"an enum with a value twice":              {`string | enum="a,b,a"`, 16, "in the list twice"},
		"an enum that is no integer":              {`integer | enum="1,x"`, 17, `want an integer, found "x"`},
		"a default that is no integer":            {`integer | default=one`, 19, `want an integer, found "one"`},
		"a default that is no boolean":            {`boolean | default=yes`, 19, "want true or false"},
		"a default that is no number":             {`number | default=NaN`, 18, "want a number"},
		"a default that is no list":               {`[]string | default=a`, 20, "want JSON, as in"},
		"a default that is no JSON":               {`[]string | default=[a]`, 20, "want JSON, as in"},
		"a default below the minimum":             {`integer | default=0 minimum=1`, 19, "the default 0 does not fit: should be greater than or equal to 1"},
		"a default outside of the enum":           {`string | enum="a,b" default=c`, 29, "the default \"c\" is no value of the enum"},
		"a default with an unknown field":         {`User | default={"name":"a","age":1}`, 16, "must not have unknown fields"},
		"a default that lacks a field":            {`User | default={"role":"guest"}`, 16, "the default lacks the required field name"},
		"a default against the pattern":           {`string | pattern="^b" default=a`, 31, "the default \"a\" does not fit"},
		"bounds without anything between":         {`integer | minimum=3 maximum=2`, 19, "the minimum is above the maximum"},
		"lengths without anything between":        {`string | minLength=3 maxLength=2`, 20, "minLength is above maxLength"},
		"items without anything between":          {`[]string | minItems=3 maxItems=2`, 21, "minItems is above maxItems"},
		"a negative length":                       {`string | minLength=-1`, 20, "not negative"},
		"a minimum that is no integer":            {`integer | minimum=0.5`, 19, "want an integer"},
		"a pattern that cannot be read":           {`string | pattern="(a"`, 19, "the pattern cannot be read: missing closing )"},
		"an unknown format":                       {`string | format=ipv5`, 17, `unknown format "ipv5" (did you mean "ipv4"?)`},
		"an unknown list type":                    {`[]string | listType=sett`, 21, `unknown list type "sett" (did you mean "set"?)`},
		"a list type twice":                       {`[]string | uniqueItems=true listType=set`, 12, "excludes listType"},
		"a set of objects":                        {`[]User | uniqueItems=true`, 10, "the elements of a set are single values"},
		"a key that is no field":                  {`[]User | listMapKey=nam`, 21, `unknown field "nam" (did you mean "name"?)`},
		"a key of what is no object":              {`[]string | listMapKey=name`, 23, "listMapKey is for lists of objects"},
		"a key that may be missing":               {`[]Loose | listMapKey=name`, 1, "must have a default or be a required property"},
		"a rule with a typo":                      {`integer | validation="slef > 0"`, 23, "undeclared reference to 'slef'"},
		"a rule with a typo that a default meets": {`integer | default=1 validation="slef > 0"`, 33, "undeclared reference to 'slef'"},
		"a rule with a later typo":                {`integer | validation="self > 0 && slef < 9"`, 35, "undeclared reference to 'slef'"},
		"a rule with quotes before a typo":        {`string | validation="self != \"a\" && slef == 'b'"`, 39, "undeclared reference to 'slef'"},
		"a rule about a field":                    {`User | validation="self.nme != ''"`, 24, "undefined field 'nme'"},
		"a rule that is not yes or no":            {`integer | validation="self + 1"`, 23, "must evaluate to a bool"},
		"a rule that costs too much":              {`[]string | validation="self.all(a, self.all(b, a == b || a != b))"`, 24, "exceeds budget"},
		"immutable elements":                      {`[]Fixed | maxItems=9`, 21, "elements of a list cannot be compared"},
		"a message without a rule":                {`string | message="no"`, 19, "a message stands behind the validation"},
		"a type that contains itself":             {`Tree`, 3, "the type Tree contains itself (Tree → Tree)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			types := read(t, `
User: {name: string | required=true, role: string}
Loose: {name: string}
Fixed: {a: integer | immutable=true}
`)
			if strings.Contains(test.field, "Tree") {
				types["Tree"] = map[string]any{"left": "[]Tree"}
			}
			_, faults := crd.Build(webapps, &crd.Schema{Kind: "WebApp", Spec: fields(t, map[string]any{"f": test.field}), Types: fields(t, types)})
			if len(faults) != 1 {
				t.Fatalf("there are %d faults, want one: %s", len(faults), said(faults))
			}
			if f := faults[0]; !strings.Contains(f.Message, test.want) || f.Column != test.column || f.Line != 1 {
				t.Errorf("got %s, want 1:%d and %q", said(faults), test.column, test.want)
			}
		})
	}
}

func said(faults []*shape.Misfit) string {
	var out []string
	for _, f := range faults {
		out = append(out, fmt.Sprintf("%s %d:%d: %s", strings.Join(f.Path, "."), f.Line, f.Column, f.Message))
	}
	return strings.Join(out, "\n")
}

// TestFaultsOfASchema has the path of each fault, and a part of what is said.
func TestFaultsOfASchema(t *testing.T) {
	open := func(text string) crd.Schema { return crd.Schema{OpenAPIV3Schema: whole(t, text)} }
	column := func(c crd.Column) crd.Schema {
		return crd.Schema{Status: fields(t, map[string]any{"url": "string"}), Columns: []crd.Column{c}}
	}
	tests := map[string]struct {
		schema crd.Schema
		want   []string
	}{
		"a kind in lower case":              {crd.Schema{Kind: "webApp"}, []string{"kind 0:0: want a kind in CamelCase"}},
		"a kind like its list":              {crd.Schema{ListKind: "WebApp"}, []string{"listKind 0:0: kind and listKind may not be the same"}},
		"a short name in upper case":        {crd.Schema{ShortNames: []string{"a", "WA"}}, []string{"shortNames.1 0:0: a DNS-1035 label"}},
		"a singular that is no word":        {crd.Schema{Singular: "web app"}, []string{"singular 0:0: a DNS-1035 label"}},
		"a category in upper case":          {crd.Schema{Categories: []string{"all", "ALL"}}, []string{"categories.1 0:0: a DNS-1035 label"}},
		"a kind that is too long":           {crd.Schema{Kind: "A" + strings.Repeat("b", 61)}, []string{"kind 0:0: must be no more than 63"}},
		"a list kind that is no word":       {crd.Schema{ListKind: "Web Apps"}, []string{"listKind 0:0: a DNS-1035 label"}},
		"a type's name of ours":             {crd.Schema{Types: fields(t, map[string]any{"string": "integer"})}, []string{"types.string 0:0: string is a type already"}},
		"a type's name with a dash":         {crd.Schema{Types: fields(t, map[string]any{"a-b": "integer"})}, []string{"types.a-b 0:0: want a name of letters and digits"}},
		"a fault of a type that is used":    {crd.Schema{Spec: fields(t, map[string]any{"a": "T", "b": "[]T"}), Types: fields(t, map[string]any{"T": map[string]any{"x": "strin"}})}, []string{`types.T.x 1:1: unknown type "strin"`}},
		"a required type":                   {crd.Schema{Types: fields(t, map[string]any{"T": "string | required=true"})}, []string{"types.T 0:0: required belongs to the field"}},
		"spec beside the whole":             {crd.Schema{Spec: fields(t, map[string]any{}), OpenAPIV3Schema: whole(t, `{type: object}`)}, []string{"spec 0:0: excludes openAPIV3Schema"}},
		"a rule of the object with a typo":  {crd.Schema{Spec: fields(t, map[string]any{"a": "integer"}), Validation: []crd.Rule{{Rule: "true"}, {Rule: "self.spec.a < self.spec.b"}}}, []string{"validation.1.rule 1:24: undefined field 'b'"}},
		"rules beside the whole":            {crd.Schema{Validation: []crd.Rule{{Rule: "true"}}, OpenAPIV3Schema: whole(t, `{type: object}`)}, []string{"validation 0:0: excludes openAPIV3Schema"}},
		"a column that leads nowhere":       {column(crd.Column{Name: "A", Path: ".status.ulr"}), []string{`columns.0.path 1:9: unknown field "ulr" (did you mean "url"?)`}},
		"a column without a dot":            {column(crd.Column{Name: "A", Path: "status.url"}), []string{"columns.0.path 0:0: want a path"}},
		"a column with a broken path":       {column(crd.Column{Name: "A", Path: ".status.conditions[?(@.type=="}), []string{"columns.0.path 1:19: the bracket is not closed"}},
		"a root that is no object":          {open(`{type: string}`), []string{"openAPIV3Schema.type 0:0: "}},
		"an unknown type":                   {open(`{type: object, properties: {spec: {type: text}}}`), []string{"openAPIV3Schema.properties.spec.type 0:0: unknown value \"text\""}},
		"no type":                           {open(`{type: object, properties: {spec: {properties: {a: {type: string}}}}}`), []string{"openAPIV3Schema.properties.spec.type 0:0: must not be empty for specified object fields"}},
		"a reference":                       {open(`{type: object, properties: {spec: {$ref: "#/x"}}}`), []string{"openAPIV3Schema.properties.spec.$ref 0:0: $ref is not supported"}},
		"a set in the words of JSON Schema": {open(`{type: object, properties: {spec: {type: array, uniqueItems: true, items: {type: string}}}}`), []string{"openAPIV3Schema.properties.spec.uniqueItems 0:0: uniqueItems is not supported (want x-kubernetes-list-type: set)"}},
		"a required field that is not":      {open(`{type: object, properties: {spec: {type: object, required: [hots], properties: {host: {type: string}}}}}`), []string{`openAPIV3Schema.properties.spec.required 0:0: unknown required field "hots" (did you mean "host"?)`}},
		"a rule with a typo":                {open(`{type: object, properties: {spec: {type: integer, x-kubernetes-validations: [{rule: "self > x"}]}}}`), []string{"openAPIV3Schema.properties.spec.x-kubernetes-validations.0.rule 1:8: undeclared reference to 'x'"}},
		"a default that does not fit":       {open(`{type: object, properties: {spec: {type: integer, default: 1, minimum: 2}}}`), []string{"openAPIV3Schema.properties.spec.default 0:0: the default 1 does not fit"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.schema.Kind == "" {
				test.schema.Kind = "WebApp"
			}
			tree, faults := crd.Build(webapps, &test.schema)
			if tree != nil {
				t.Error("there is a CRD in spite of faults")
			}
			if len(faults) != len(test.want) {
				t.Fatalf("got\n%s\nwant %d faults", said(faults), len(test.want))
			}
			for i, f := range faults {
				if got := said([]*shape.Misfit{f}); !strings.HasPrefix(got, test.want[i]) {
					t.Errorf("got %s, want %s", got, test.want[i])
				}
			}
		})
	}
}

// TestFaultsOfForm has what is found while a schema is read, before anything is made of it.
func TestFaultsOfForm(t *testing.T) {
	tests := map[string]struct{ schema, want string }{
		"an unknown scope":              {`{kind: A, scope: cluster}`, `scope: unknown scope "cluster" (did you mean "Cluster"?)`},
		"a list where a type is wanted": {`{kind: A, spec: {a: [string]}}`, `spec.a: want a type or a map of fields, found a list (a list of text is "[]string")`},
		"a number for a type":           {`{kind: A, types: {T: {a: 1}}}`, `types.T.a: want a type or a map of fields, found the number 1 (as in "integer | default=1")`},
		"nothing for a type":            {`{kind: A, status: {a: }}`, `status.a: want a type or a map of fields, found nothing (as in "integer | default=1")`},
		"text for fields":               {`{kind: A, status: url}`, `status: want a map, found the text "url"`},
		"a column of an unknown type":   {`{kind: A, columns: [{name: A, path: .kind, type: text}]}`, `columns[0].type: unknown column type "text" (want one of string, integer, number, boolean, date)`},
		"a column of an unknown format": {`{kind: A, columns: [{name: A, path: .kind, format: int46}]}`, `columns[0].format: unknown column format "int46" (did you mean "int64"?)`},
		"an unknown word":               {`{kind: A, openAPIV3Schema: {minimun: 1}}`, `openAPIV3Schema.minimun: unknown field (did you mean "minimum"?)`},
		"fields without properties":     {`{kind: A, openAPIV3Schema: {zzzzzzz: {}}}`, `openAPIV3Schema.zzzzzzz: unknown field (fields of an object stand under properties)`},
		"text for a number":             {`{kind: A, openAPIV3Schema: {properties: {a: {minLength: "3"}}}}`, `openAPIV3Schema.properties.a.minLength: want a whole number, found the text "3"`},
		"text for a list":               {`{kind: A, openAPIV3Schema: {required: a}}`, `openAPIV3Schema.required: want a list, found the text "a"`},
		"text for a schema":             {`{kind: A, openAPIV3Schema: {properties: {a: string}}}`, `openAPIV3Schema.properties.a: want a map, found the text "string"`},
		"nothing for schemas":           {`{kind: A, openAPIV3Schema: {properties: }}`, `openAPIV3Schema.properties: must not be empty`},
		"a list for a schema or true":   {`{kind: A, openAPIV3Schema: {additionalProperties: []}}`, `openAPIV3Schema.additionalProperties: want a map, found a list`},
		"text for a schema or true":     {`{kind: A, openAPIV3Schema: {additionalProperties: string}}`, `openAPIV3Schema.additionalProperties: want a map, found the text "string"`},
		"a fault below a schema":        {`{kind: A, openAPIV3Schema: {additionalProperties: {minimun: 1}}}`, `openAPIV3Schema.additionalProperties.minimun: unknown field (did you mean "minimum"?)`},
		"a fault in a list's elements":  {`{kind: A, openAPIV3Schema: {items: {minimun: 1}}}`, `openAPIV3Schema.items.minimun: unknown field (did you mean "minimum"?)`},
		"a fault in one of a few":       {`{kind: A, openAPIV3Schema: {anyOf: [{}, {minimun: 1}]}}`, `openAPIV3Schema.anyOf[1].minimun: unknown field (did you mean "minimum"?)`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root := form.Node(read(t, test.schema))
			d, schema := form.NewDecoder(root), &crd.Schema{}
			d.Value("", root, schema)
			if len(d.Faults) != 1 {
				t.Fatalf("there are %d faults, want one: %v", len(d.Faults), d.Faults)
			}
			if got := string(d.Faults[0].At) + ": " + d.Faults[0].Message; got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if _, faults := crd.Build(webapps, schema); len(faults) > 0 {
				t.Errorf("a reported fault is reported again: %s", said(faults))
			}
		})
	}
}

// TestASchemaInTheFormOfKubernetesMayHaveAllItsWords has what other programs write.
func TestASchemaInTheFormOfKubernetesMayHaveAllItsWords(t *testing.T) {
	const text = `
type: object
description: ""
required: []
externalDocs: {url: https://example.com}
properties:
  spec:
    type: object
    properties:
      none: {type: string, nullable: true, default: null}
      some: {type: integer, enum: [1, 2], default: 1, maximum: 2}
      list: {type: array, items: {type: string}, default: []}
      map: {type: object, additionalProperties: {type: string, pattern: ""}}
      any: {type: object, additionalProperties: true}
      either: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], default: a}
    x-kubernetes-validations: [{rule: self.some > 0, message: no, reason: FieldValueInvalid}]
`
	tree := build(t, &crd.Schema{OpenAPIV3Schema: whole(t, text)})
	spec := properties(t, tree, "spec")
	want := read(t, `
none: {type: string, nullable: true, default: null}
some: {type: integer, enum: [1, 2], default: 1, maximum: 2}
list: {type: array, items: {type: string}, default: []}
map: {type: object, additionalProperties: {type: string}}
any: {type: object, additionalProperties: true}
either: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], default: a}
`)
	mustEqual(t, "spec", want, spec)
}

func TestNamesThatCannotHaveACRD(t *testing.T) {
	for name, want := range map[string]string{
		"pods.v1": "API group of its own", "foos.example.com": "needs a version", "foos.v1.example": "needs a dot",
	} {
		parsed, err := dsl.ParseResourceName(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := crd.CheckName(parsed); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}

func TestASchemaThatTypesBlowUpIsRefused(t *testing.T) {
	types := map[string]any{"T0": map[string]any{"a": "string"}}
	for i := 1; i < 40; i++ {
		below := fmt.Sprintf("T%d", i-1)
		types[fmt.Sprintf("T%d", i)] = map[string]any{"a": below, "b": below}
	}
	_, faults := crd.Build(webapps, &crd.Schema{Kind: "WebApp", Types: fields(t, types), Spec: fields(t, map[string]any{"a": "T39"})})
	if len(faults) != 1 || !strings.Contains(faults[0].Message, "more than 5000 fields") {
		t.Errorf("got %s, want a limit", said(faults))
	}
}
