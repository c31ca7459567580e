// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/crd"
)

func TestAFieldOfEveryForm(t *testing.T) {
	const types = `
User: {name: string | required=true, role: Role | default=guest}
Role: string | enum="guest,admin"
Limits: {count: integer | default=3}
`
	tests := map[string]struct{ field, want string }{
		"text":                {`f: string`, `{type: string}`},
		"an integer":          {`f: integer`, `{type: integer, format: int64}`},
		"a number":            {`f: number | minimum=0.5`, `{type: number, minimum: 0.5}`},
		"kro's float":         {`f: float`, `{type: number}`},
		"a boolean":           {`f: boolean | default=false`, `{type: boolean, default: false}`},
		"a date":              {`f: date`, `{type: string, format: date}`},
		"a time":              {`f: datetime`, `{type: string, format: date-time}`},
		"any object":          {`f: object`, `{type: object, x-kubernetes-preserve-unknown-fields: true}`},
		"integer or text":     {`f: int-or-string | default=80`, `{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], default: 80}`},
		"text where either":   {`f: int-or-string | default="80"`, `{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], default: "80"}`},
		"a list":              {`f: "[]integer"`, `{type: array, items: {type: integer, format: int64}}`},
		"a list of lists":     {`f: "[][]string"`, `{type: array, items: {type: array, items: {type: string}}}`},
		"a map":               {`f: "map[string]boolean"`, `{type: object, additionalProperties: {type: boolean}}`},
		"a map of lists":      {`f: "map[string][]string"`, `{type: object, additionalProperties: {type: array, items: {type: string}}}`},
		"an object":           {`f: {a: string, b: {c: integer}}`, `{type: object, properties: {a: {type: string}, b: {type: object, properties: {c: {type: integer, format: int64}}}}}`},
		"a type":              {`f: User`, `{type: object, required: [name], properties: {name: {type: string}, role: {type: string, enum: [guest, admin], default: guest}}}`},
		"a list of a type":    {`f: "[]Role | maxItems=2"`, `{type: array, maxItems: 2, items: {type: string, enum: [guest, admin]}}`},
		"a map of a type":     {`f: "map[string]Limits"`, `{type: object, additionalProperties: {type: object, properties: {count: {type: integer, format: int64, default: 3}}}}`},
		"a list as a map":     {`f: "[]User | listMapKey=name"`, `{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, role: {type: string, enum: [guest, admin], default: guest}}}}`},
		"a list as a set":     {`f: "[]string | uniqueItems=true minItems=1"`, `{type: array, x-kubernetes-list-type: set, minItems: 1, items: {type: string}}`},
		"an atomic list":      {`f: "[]string | listType=atomic"`, `{type: array, x-kubernetes-list-type: atomic, items: {type: string}}`},
		"bounds":              {`f: integer | default=1 minimum=1 maximum=10`, `{type: integer, format: int64, default: 1, minimum: 1, maximum: 10}`},
		"bounds of text":      {`f: string | minLength=1 maxLength=9`, `{type: string, minLength: 1, maxLength: 9}`},
		"bounds of maps":      {`f: "map[string]string | minProperties=1 maxProperties=9"`, `{type: object, minProperties: 1, maxProperties: 9, additionalProperties: {type: string}}`},
		"a pattern":           {`f: string | pattern="^\d+\|(a b)$"`, `{type: string, pattern: '^\d+\|(a b)$'}`},
		"a bare pattern":      {`f: string | pattern=^(a|b)$ minLength=1`, `{type: string, pattern: '^(a|b)$', minLength: 1}`},
		"a format":            {`f: string | format=ipv4`, `{type: string, format: ipv4}`},
		"a description":       {`f: string | description="Say \"hi\" | \\o/"`, `{type: string, description: 'Say "hi" | \o/'}`},
		"single quotes":       {`f: string | description='it is "it"'`, `{type: string, description: 'it is "it"'}`},
		"an enum of integers": {`f: integer | enum="1, 2" default=2`, `{type: integer, format: int64, enum: [1, 2], default: 2}`},
		"a bar between":       {`f: string | minLength=1 | maxLength=2`, `{type: string, minLength: 1, maxLength: 2}`},
		"a default list":      {`f: '[]string | default=["a b", "]"]'`, `{type: array, items: {type: string}, default: ["a b", "]"]}`},
		"a default object":    {`f: 'User | default={"name": "x"}'`, `{type: object, required: [name], default: {name: x}, properties: {name: {type: string}, role: {type: string, enum: [guest, admin], default: guest}}}`},
		"immutable":           {`f: string | immutable=true`, `{type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: it must not be changed}]}`},
		"a rule":              {`f: integer | validation="self % 2 == 0" message="must be even"`, `{type: integer, format: int64, x-kubernetes-validations: [{rule: self % 2 == 0, message: must be even}]}`},
		"two rules":           {`f: integer | validation="self > 0" validation="self < 9"`, `{type: integer, format: int64, x-kubernetes-validations: [{rule: self > 0}, {rule: self < 9}]}`},
		"not required":        {`f: string | required=false immutable=false`, `{type: string}`},
		"text over lines":     {"f: |\n  string\n  | minLength=1\n    maxLength=2", `{type: string, minLength: 1, maxLength: 2}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tree := build(t, &crd.Schema{Spec: fields(t, read(t, test.field)), Types: fields(t, read(t, types))})
			mustEqual(t, "schema", any(read(t, test.want)), properties(t, tree, "spec")["f"])
		})
	}
}

func TestDefaultsTakeEffectWhereAnObjectIsLeftOut(t *testing.T) {
	const defaulted = `
T: {c: integer | default=1}
Within: {d: integer | default=2, e: integer | default=3}
Whole: {c: integer | default=1, b: 'Within | default={"e": 4}', x: string}
Ruled: Whole | validation="self.c < self.b.d && self.b.e == 4"
`
	tests := map[string]struct{ spec, want string }{
		"a default deep inside":                      {`a: {b: {c: integer | default=1}}`, `{required: ~, default: {}, a: {}, b: {}}`},
		"a required field without a default":         {`a: {x: string | required=true, c: integer | default=1}`, `{required: ~, default: ~, a: ~}`},
		"a required field with a default":            {`a: {x: string | required=true default=y, c: integer | default=1}`, `{required: ~, default: {}, a: {x: y}}`},
		"no default":                                 {`a: {x: string}`, `{required: ~, default: ~, a: ~}`},
		"a field of spec must be given":              {`{z: string | required=true, a: {c: integer | default=1}}`, `{required: [spec], default: ~, a: {}}`},
		"a field of spec must be given and has some": {`{z: string | required=true default=y}`, `{required: ~, default: {z: y}}`},
		"an object with a rule":                      {`a: Ruled`, `{required: ~, default: {}, a: {c: 1, b: {d: 2, e: 4}}}`},
		"in a list there is nothing to leave out":    {`a: "[]T"`, `{required: ~, default: ~, a: ~}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tree := build(t, &crd.Schema{Spec: fields(t, read(t, test.spec)), Types: fields(t, read(t, defaulted))})
			root, _, _ := unstructured.NestedMap(versionOf(t, tree), "schema", "openAPIV3Schema")
			want := read(t, test.want)
			mustEqual(t, "required", want["required"], root["required"])
			spec, _, _ := unstructured.NestedMap(root, "properties", "spec")
			mustEqual(t, "default of spec", want["default"], spec["default"])
			a, _, _ := unstructured.NestedMap(spec, "properties", "a")
			mustEqual(t, "default of a", want["a"], a["default"])
			if expected, has := want["b"]; has {
				b, _, _ := unstructured.NestedMap(a, "properties", "b")
				mustEqual(t, "default of b", expected, b["default"])
			}
		})
	}
}

func TestARuleMayLookAtTheWholeObject(t *testing.T) {
	tree := build(t, &crd.Schema{
		Spec:       fields(t, read(t, `{least: integer, most: integer}`)),
		Validation: []crd.Rule{{Rule: "self.spec.least <= self.spec.most", Message: "no room"}, {Rule: "self.metadata.name != 'x'"}},
	})
	rules, _, _ := unstructured.NestedSlice(versionOf(t, tree), "schema", "openAPIV3Schema", "x-kubernetes-validations")
	mustEqual(t, "rules", []any{
		map[string]any{"rule": "self.spec.least <= self.spec.most", "message": "no room"}, map[string]any{"rule": "self.metadata.name != 'x'"},
	}, any(rules))
}

func TestStatusHasWhatOperatorsReport(t *testing.T) {
	tests := map[string]struct {
		schema crd.Schema
		want   []string
	}{
		"no status":                        {crd.Schema{}, []string{"conditions"}},
		"a status":                         {crd.Schema{Status: fields(t, map[string]any{"url": "string"})}, []string{"conditions", "url"}},
		"a status with a generation":       {crd.Schema{Status: fields(t, map[string]any{"observedGeneration": "integer"})}, []string{"conditions", "observedGeneration"}},
		"conditions of the author's own":   {crd.Schema{Status: fields(t, map[string]any{"conditions": "[]string"})}, []string{"conditions"}},
		"a schema in Kubernetes' own form": {crd.Schema{OpenAPIV3Schema: whole(t, `{type: object, properties: {status: {type: object, properties: {a: {type: string}}}}}`)}, []string{"a"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tree := build(t, &test.schema)
			var got []string
			status := properties(t, tree, "status")
			for _, field := range []string{"a", "conditions", "observedGeneration", "url"} {
				if _, has := status[field]; has {
					got = append(got, field)
				}
			}
			mustEqual(t, "fields of status", test.want, got)
			if _, found, _ := unstructured.NestedMap(versionOf(t, tree), "subresources", "status"); !found {
				t.Error("there is no status subresource")
			}
			if name == "conditions of the author's own" {
				items, _, _ := unstructured.NestedString(status, "conditions", "items", "type")
				mustEqual(t, "the author's conditions", "string", items)
			}
		})
	}
}

func TestNamesAndScope(t *testing.T) {
	tests := map[string]struct {
		schema crd.Schema
		want   string
	}{
		"defaults": {
			crd.Schema{}, `{scope: Namespaced, names: {kind: WebApp, plural: webapps, singular: webapp, listKind: WebAppList}}`,
		},
		"everything": {
			crd.Schema{Scope: "Cluster", Singular: "app", ListKind: "Apps", ShortNames: []string{"wa"}, Categories: []string{"all"}},
			`{scope: Cluster, names: {kind: WebApp, plural: webapps, singular: app, listKind: Apps, shortNames: [wa], categories: [all]}}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tree := build(t, &test.schema)
			spec := tree["spec"].(map[string]any)
			want := read(t, test.want)
			mustEqual(t, "names", want["names"], spec["names"])
			mustEqual(t, "scope", want["scope"], spec["scope"])
			mustEqual(t, "name", any(map[string]any{"name": "webapps.example.com"}), tree["metadata"])
		})
	}
}

func TestGroupsOfKubernetesAreMarked(t *testing.T) {
	name := dsl.ResourceName{Resource: "foos", Version: "v1", Group: "foo.k8s.io"}
	tree, faults := crd.Build(name, &crd.Schema{Kind: "Foo"})
	if len(faults) > 0 {
		t.Fatal(faults[0])
	}
	got, _, _ := unstructured.NestedString(tree, "metadata", "annotations", "api-approved.kubernetes.io")
	mustEqual(t, "annotation", "unapproved, the operator's own", got)
}

func TestColumns(t *testing.T) {
	s := &crd.Schema{
		Spec:   fields(t, map[string]any{"host": "string", "labels": "map[string]integer"}),
		Status: fields(t, map[string]any{"ready": "integer", "since": "datetime"}),
		Columns: []crd.Column{
			{Name: "Ready", Path: ".status.ready"},
			{Name: "Since", Path: ".status.since"},
			{Name: "State", Path: `.status.conditions[?(@.type=="Ready")].status`, Description: "How it is.", Priority: 1},
			{Name: "Weight", Path: ".spec.labels.weight", Type: "number", Format: "float"},
			{Name: "Of", Path: `.metadata.labels.app`},
		},
	}
	want := read(t, `
list:
- {name: Ready, type: integer, jsonPath: .status.ready}
- {name: Since, type: date, jsonPath: .status.since}
- {name: State, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status', description: How it is., priority: 1}
- {name: Weight, type: number, format: float, jsonPath: .spec.labels.weight}
- {name: Of, type: string, jsonPath: .metadata.labels.app}
- {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
`)["list"]
	mustEqual(t, "columns", want, versionOf(t, build(t, s))["additionalPrinterColumns"])
	s.Columns = []crd.Column{{Name: "AGE", Path: ".metadata.creationTimestamp", Type: "date"}}
	got := versionOf(t, build(t, s))["additionalPrinterColumns"].([]any)
	if len(got) != 1 {
		t.Errorf("there are %d columns, want the author's age alone", len(got))
	}
}
