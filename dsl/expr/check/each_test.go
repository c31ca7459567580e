// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/expr/check"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

const lists = `{"type": "object", "properties": {"spec": {"type": "object", "properties": {
  "names": {"type": "array", "items": {"type": "string"}},
  "ports": {"type": "array", "items": {"type": "object", "properties": {"number": {"type": "integer"}, "name": {"type": "string"}}}},
  "env": {"type": "object", "additionalProperties": {"type": "string"}},
  "zones": {"type": "object", "additionalProperties": {"type": "object", "properties": {"size": {"type": "integer"}}}},
  "limits": {"type": "object", "properties": {"cpu": {"type": "string"}, "memory": {"type": "string"}}},
  "mixed": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}},
  "any": {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": true}}
}}}}`

// TestTheVariablesOfAnElementHaveTypes has lists with an expression about an element, and what is said of it.
func TestTheVariablesOfAnElementHaveTypes(t *testing.T) {
	tests := map[string]struct {
		forEach    any
		text, want string
	}{
		"a list of texts":                        {"${self.spec.names}", "item.size", `text (item) has no field "size"`},
		"a list of texts that may be missing":    {"${self.spec.?names}", "item.size", `text (item) has no field "size"`},
		"a part of it":                           {"${self.spec.names.filter(n, n != 'x')}", "item.size", `text (item) has no field "size"`},
		"with others":                            {"${self.spec.?names.orValue([]) + ['x']}", "item.size", `text (item) has no field "size"`},
		"value is the same":                      {"${self.spec.names}", "value.size", `text (value) has no field "size"`},
		"a list of objects":                      {"${self.spec.ports}", "item.nam", `unknown field "nam" in item (did you mean "name"?)`},
		"the kind of a field":                    {"${self.spec.ports}", "item.number == 'x'", "a whole number (item.number) and text are never equal"},
		"what is worked out":                     {"${self.spec.ports.map(p, p.number)}", "item + 'x'", "cannot use + with a whole number (item) and text"},
		"a map of texts":                         {"${self.spec.env}", "item.size", `text (item) has no field "size"`},
		"a map of objects":                       {"${self.spec.zones}", "item.sise", `unknown field "sise" in item (did you mean "size"?)`},
		"an object whose fields are alike":       {"${self.spec.limits}", "item + 1", "cannot use + with text (item) and a whole number"},
		"an object whose fields differ":          {"${self.spec.mixed}", "item + 1", ""},
		"a list of anything":                     {"${self.spec.any}", "item.x.y + 1", ""},
		"what only a parameter has":              {"${params.list}", "item.x.y + 1", ""},
		"a list that is written":                 {[]any{"a", "b"}, "item.size", `text (item) has no field "size"`},
		"a list of maps that is written":         {[]any{map[string]any{"name": "a"}, map[string]any{"name": "b", "port": int64(1)}}, "item.prot", `unknown field "prot" in item (did you mean "port"?)`},
		"their kinds":                            {[]any{map[string]any{"name": "a"}, map[string]any{"name": "b"}}, "item.name + 1", "cannot use + with text (item.name) and a whole number"},
		"of different kinds":                     {[]any{map[string]any{"v": "a"}, map[string]any{"v": int64(1)}}, "item.v + 1", ""},
		"a list of maps and others":              {[]any{map[string]any{"name": "a"}, "b"}, "item.nam", ""},
		"with expressions":                       {[]any{"${self.metadata.name}", "x-${self.metadata.name}"}, "item.size", ""},
		"with expressions whose kind is known":   {[]any{"${string(self.spec.ports.size())}", "x"}, "item.size", `text (item) has no field "size"`},
		"a map that is written":                  {map[string]any{"a": int64(1), "b": int64(2)}, "value.size", `a whole number (value) has no field "size"`},
		"a map of maps that is written":          {map[string]any{"a": map[string]any{"n": int64(1)}}, "value.m", `unknown field "m" in value`},
		"a map with keys that are worked out":    {map[string]any{"${self.spec.x}": int64(1)}, "value.size", ""},
		"null in a list":                         {[]any{nil, "a"}, "item.size", ""},
		"a key is text":                          {"${self.spec.names}", "key + 1", "cannot use + with text (key) and a whole number"},
		"a key of a map, too":                    {"${self.spec.zones}", "key.size", `text (key) has no field "size"`},
		"an index is a number":                   {"${self.spec.names}", "index + 'x'", "cannot use + with a whole number (index) and text"},
		"what an element has, as its own schema": {"${self.spec.ports}", "item.name + string(item.number) + key + string(index)", ""},
	}
	c, err := compiler(t).With(expr.ItemVariables()...)
	if err != nil {
		t.Fatal(err)
	}
	s := shape.Schemas{Self: shape.Shape{Schema: schema(t, lists)}, Unset: true}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			forEach, err := compiler(t).Template(test.forEach)
			if err != nil {
				t.Fatal(err)
			}
			program, err := c.Value(test.text)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := check.Program(program, check.Each(forEach, s)); err != nil {
				_, got, _ = strings.Cut(err.Error(), ": ")
			}
			if got != test.want && (test.want == "" || !strings.HasPrefix(got, test.want)) {
				t.Errorf("it says %q, want %q", got, test.want)
			}
		})
	}
}
