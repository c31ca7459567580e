// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
)

// TestIncludeWhenOfAHandlerIsChecked holds the faults of a handler's includeWhen, and their places.
func TestIncludeWhenOfAHandlerIsChecked(t *testing.T) {
	const child = `apply: {a: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}`
	tests := map[string]struct {
		fields, want string
	}{
		"where nothing is applied": {
			"handlers: [{id: h, includeWhen: self.spec.size > 1, set: {status: {seen: true}}}]",
			`operator.yaml:1:182: resources[0].handlers[0].includeWhen: is for handlers that apply or patch: this one has nothing that could be wanted or not (when says whether to act)`,
		},
		"where no step applies": {
			"handlers: [{id: h, includeWhen: self.spec.size > 1, steps: [{log: {message: hello}}]}]",
			`operator.yaml:1:182: resources[0].handlers[0].includeWhen: is for handlers that apply or patch: this one has nothing that could be wanted or not (when says whether to act)`,
		},
		"in a schedule": {
			"schedule: [{id: h, every: 1h, includeWhen: self.spec.size > 1, log: {message: hello}}]",
			`operator.yaml:1:193: resources[0].schedule[0].includeWhen: is not for a schedule, which has no one object`,
		},
		"that is no expression": {
			`handlers: [{id: h, includeWhen: "self.spec.size >", ` + child + `}]`,
			`operator.yaml:1:212: resources[0].handlers[0].includeWhen: unexpected end of the expression`,
		},
		"that is misspelled": {
			`handlers: [{id: h, includWhen: self.spec.size > 1, ` + child + `}]`,
			`operator.yaml:1:182: resources[0].handlers[0].includWhen: unknown field (did you mean "includeWhen"?)`,
		},
		"of a field that is not there": {
			`handlers: [{id: h, includeWhen: self.spec.sise > 1, ` + child + `}]`,
			`operator.yaml:1:205: resources[0].handlers[0].includeWhen: unknown field "sise" in self.spec (did you mean "size"?)`,
		},
		"of a field that is not there, with steps": {
			`handlers: [{id: h, includeWhen: self.spec.sise > 1, steps: [{name: one, ` + child + `}]}]`,
			`operator.yaml:1:205: resources[0].handlers[0].includeWhen: unknown field "sise" in self.spec (did you mean "size"?)`,
		},
		"that looks at the handler's own children": {
			`handlers: [{id: h, includeWhen: "!has(children.a)", ` + child + `}]`,
			`operator.yaml:1:222: resources[0].handlers[0].apply: the handler's includeWhen looks at children.a, which the handler makes itself: give the children that depend on it an includeWhen of their own`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			text := `{apiVersion: handwerk.dev/v1alpha1, kind: Operator, metadata: {name: op}, resources: [{resource: foos.v1.example.com, schema: {kind: Foo, spec: {size: integer}}, ` + test.fields + `}]}`
			op, err := config.Parse("operator.yaml", []byte(text), handlers.Standard())
			var got []string
			if err != nil {
				got = append(got, err.Error())
			} else if faults, _, err := config.Check(op); err != nil {
				t.Fatal(err)
			} else {
				for _, f := range faults {
					got = append(got, f.Error())
				}
			}
			if all := strings.Join(got, "\n"); !strings.Contains(all, test.want) {
				t.Errorf("faults are\n%s\nwant\n%s", all, test.want)
			}
		})
	}
}

// TestAnIncludeWhenMakesFieldsSure holds that what an includeWhen of a handler has asked for is there for its templates.
func TestAnIncludeWhenMakesFieldsSure(t *testing.T) {
	const text = `{apiVersion: handwerk.dev/v1alpha1, kind: Operator, metadata: {name: op}, resources: [{resource: foos.v1.example.com, schema: {kind: Foo, spec: {tls: string}},
		handlers: [{id: h, includeWhen: has(self.spec.tls), apply: {a: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {tls: "${self.spec.tls}"}}}}]}]}`
	op, err := config.Parse("operator.yaml", []byte(strings.ReplaceAll(text, "\t", " ")), handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	faults, warnings, err := config.Check(op)
	if err != nil || len(faults)+len(warnings) > 0 {
		t.Errorf("faults %v, warnings %v, error %v", faults, warnings, err)
	}
}
