// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"slices"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestBreakingChangesOfASchemaAreFound(t *testing.T) {
	for name, tt := range map[string]struct {
		was, is string
		want    []string
	}{
		"nothing changes":           {`{a: {type: string}}`, `{a: {type: string}}`, nil},
		"another type":              {`{a: {type: integer}}`, `{a: {type: string}}`, []string{"v1 spec.a: its type changes from integer to string"}},
		"a wider type":              {`{a: {type: integer}, b: {type: string}}`, `{a: {type: number}, b: {x-kubernetes-int-or-string: true}}`, nil},
		"a field less":              {`{a: {type: string}, b: {type: string}}`, `{a: {type: string}}`, []string{"v1 spec.b: the field is dropped"}},
		"a field more":              {`{a: {type: string}}`, `{a: {type: string}, b: {type: string}}`, nil},
		"a field that is required":  {`{a: {type: object, properties: {b: {type: string}}}}`, `{a: {type: object, required: [b], properties: {b: {type: string}}}}`, []string{"v1 spec.a.b: the field is required now, and has no default"}},
		"a required default":        {`{a: {type: object, properties: {b: {type: string}}}}`, `{a: {type: object, required: [b], properties: {b: {type: string, default: x}}}}`, nil},
		"a value less":              {`{a: {type: string, enum: [x, z]}}`, `{a: {type: string, enum: [x]}}`, []string{`v1 spec.a: the value "z" is not allowed any more`}},
		"a value more":              {`{a: {type: string, enum: [x]}}`, `{a: {type: string, enum: [x, z]}}`, nil},
		"values for the first time": {`{a: {type: string}}`, `{a: {type: string, enum: [x]}}`, []string{"v1 spec.a: only some values are allowed now"}},
		"narrower bounds":           {`{a: {type: integer, minimum: 1, maximum: 9}}`, `{a: {type: integer, minimum: 2, maximum: 8}}`, []string{"v1 spec.a: minimum is 2 now", "v1 spec.a: maximum is 8 now"}},
		"wider bounds":              {`{a: {type: integer, minimum: 1, maximum: 9}}`, `{a: {type: integer, maximum: 10}}`, nil},
		"a longer text":             {`{a: {type: string, maxLength: 9}}`, `{a: {type: string, maxLength: 8}}`, []string{"v1 spec.a: maxLength is 8 now"}},
		"another pattern":           {`{a: {type: string, pattern: a}}`, `{a: {type: string, pattern: b}}`, []string{`v1 spec.a: it must match the pattern "b" now`}},
		"a pattern less":            {`{a: {type: string, pattern: a}}`, `{a: {type: string}}`, nil},
		"another rule":              {`{a: {type: string}}`, `{a: {type: string, x-kubernetes-validations: [{rule: self != ''}]}}`, []string{`v1 spec.a: the rule "self != ''" is new`}},
		"a rule for updates":        {`{a: {type: string}}`, `{a: {type: string, x-kubernetes-validations: [{rule: self == oldSelf}]}}`, []string{`v1 spec.a: the rule "self == oldSelf" is new; it holds for updates alone, so objects cannot be tried by it`}},
		"a rule for both":           {`{a: {type: string}}`, `{a: {type: string, x-kubernetes-validations: [{rule: "self == oldSelf.orValue(self)", optionalOldSelf: true}]}}`, []string{`v1 spec.a: the rule "self == oldSelf.orValue(self)" is new`}},
		"null":                      {`{a: {type: string, nullable: true}}`, `{a: {type: string}}`, []string{"v1 spec.a: null is not allowed any more"}},
		"in a list":                 {`{a: {type: array, items: {type: integer}}}`, `{a: {type: array, items: {type: string}}}`, []string{"v1 spec.a[]: its type changes from integer to string"}},
		"in a map":                  {`{a: {type: object, additionalProperties: {type: integer}}}`, `{a: {type: object, additionalProperties: {type: string}}}`, []string{"v1 spec.a.*: its type changes from integer to string"}},
		"fields without a name":     {`{a: {type: object, x-kubernetes-preserve-unknown-fields: true}}`, `{a: {type: object}}`, []string{"v1 spec.a: fields that the schema does not name are dropped"}},
		"any field gets a type":     {`{a: {type: object, x-kubernetes-preserve-unknown-fields: true}}`, `{a: {type: object, additionalProperties: {type: string}}}`, []string{"v1 spec.a.*: its type changes from any to string"}},
		"any value gets a type":     {`{a: {type: object, additionalProperties: true}}`, `{a: {type: object, additionalProperties: {type: string}}}`, []string{"v1 spec.a.*: its type changes from any to string"}},
		"one of any gets a type":    {`{a: {type: object, x-kubernetes-preserve-unknown-fields: true}}`, `{a: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {b: {type: string}}}}`, []string{"v1 spec.a.b: its type changes from any to string"}},
		"one of a map gets another": {`{a: {type: object, additionalProperties: {type: string}}}`, `{a: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {b: {type: integer}, c: {type: string}}}}`, []string{"v1 spec.a.b: its type changes from string to integer"}},
		"a map gets names":          {`{a: {type: object, additionalProperties: {type: string}}}`, `{a: {type: object, properties: {b: {type: integer}}}}`, []string{"v1 spec.a: fields that the schema does not name are dropped", "v1 spec.a.b: its type changes from string to integer"}},
		"any field of any depth":    {`{a: {type: object, x-kubernetes-preserve-unknown-fields: true}}`, `{a: {type: object, additionalProperties: true}}`, []string{"v1 spec.a.*: fields that the schema does not name are dropped"}},
		"any form stays":            {`{a: {x-kubernetes-preserve-unknown-fields: true}}`, `{a: {description: x, x-kubernetes-preserve-unknown-fields: true}}`, nil},
		"a form becomes any":        {`{a: {type: object, additionalProperties: {type: object, properties: {b: {type: string}}}}}`, `{a: {type: object, x-kubernetes-preserve-unknown-fields: true}}`, nil},
		"names become a map":        {`{a: {type: object, properties: {b: {type: string}, c: {type: integer}}}}`, `{a: {type: object, additionalProperties: {type: string}}}`, []string{"v1 spec.a.c: its type changes from integer to string"}},
		"a required field's default": {`{a: {type: object, required: [b], properties: {b: {type: string, default: x}}}}`, `{a: {type: object, required: [b], properties: {b: {type: string}}}}`,
			[]string{"v1 spec.a.b: the field is required, and its default goes away; the API server reads objects with it, so they cannot be tried without it"}},
		"a default for a requirement": {`{a: {type: object, properties: {b: {type: string, default: x}}}}`, `{a: {type: object, required: [b], properties: {b: {type: string}}}}`,
			[]string{"v1 spec.a.b: the field is required, and its default goes away; the API server reads objects with it, so they cannot be tried without it"}},
		"a default less":            {`{a: {type: string, default: x}}`, `{a: {type: string}}`, []string{"v1 spec.a: its default goes away; the API server reads objects with it, so they cannot be tried without it"}},
		"another default":           {`{a: {type: string, default: x}}`, `{a: {type: string, default: z}}`, nil},
		"a field with a default":    {`{a: {type: string, default: x}, b: {type: string}}`, `{b: {type: string}}`, []string{"v1 spec.a: the field is dropped"}},
		"a list of unique elements": {`{a: {type: array, items: {type: string}}}`, `{a: {type: array, x-kubernetes-list-type: set, items: {type: string}}}`, []string{"v1 spec.a: its elements must be unique now"}},
	} {
		t.Run(name, func(t *testing.T) {
			crd := func(fields string) *unstructured.Unstructured {
				return &unstructured.Unstructured{Object: tree(t, `{spec: {versions: [{name: v1, served: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: `+fields+`}}}}}]}}`)}
			}
			live, err := typed(crd(tt.was))
			if err != nil {
				t.Fatal(err)
			}
			desired, err := typed(crd(tt.is))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, version := range breaking(live, desired) {
				got = append(got, version.found...)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTheServersOwnFieldsNeedNoSchema(t *testing.T) {
	const named, bare = `{apiVersion: {type: string}, kind: {type: string}, metadata: {type: object}, spec: {type: object}}`, `{spec: {type: object}}`
	crd := func(fields string) *apiextensions.CustomResourceDefinition {
		out, err := typed(&unstructured.Unstructured{Object: tree(t, `{spec: {versions: [{name: v1, schema: {openAPIV3Schema: {type: object, properties: `+fields+`}}}]}}`)})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for name, tt := range map[string]struct{ was, is string }{
		"when a schema stops naming them":   {named, bare},
		"when a schema begins to name them": {bare, named},
	} {
		t.Run(name, func(t *testing.T) {
			if got := breaking(crd(tt.was), crd(tt.is)); len(got) > 0 {
				t.Errorf("got %q, want nothing", got[0].found)
			}
		})
	}
}
