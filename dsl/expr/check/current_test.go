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

// TestChildrenBeforeTheirApplyHaveTypes has expressions about current, and what is said of them.
func TestChildrenBeforeTheirApplyHaveTypes(t *testing.T) {
	const before = "child db is not there before it was made: write "
	tests := map[string]string{
		"current.db.?spec.?size.orValue(1) + 1":                       "",
		"current.db.?spec.?sise":                                      `unknown field "sise"`,
		"current.db.?spec.?size.orValue('x') == 'x'":                  "",
		"current.bd.?spec":                                            `unknown child of this handler "bd" (want one of db, each)`,
		"current.db.spec.size":                                        before + "current.db.?spec.orValue(…), or ask has(current.db.spec) before",
		"current.db['spec'].size":                                     before + "current.db[?'spec'].orValue(…), or ask 'spec' in current.db before",
		"has(current.db.spec) ? current.db.spec.size : 1":             "",
		"has(current.db.spec.size)":                                   before,
		"current.each[?key].?spec.?size.orValue(1) + 1":               "",
		"current.each[?key].?spec.?sise":                              `unknown field "sise"`,
		"current.each.size() + 1":                                     "",
		"current.each.exists(k, k == 'x')":                            "",
		"current.each.all(k, current.each[k].spec.size > 1)":          "",
		"current.each.all(k, current.each[k].spec.sise > 1)":          `unknown field "sise"`,
		"[self.spec.list].exists(current, current.anything.x == 'y')": "",
	}
	c, err := compiler(t).With(append(expr.ItemVariables(), expr.Current)...)
	if err != nil {
		t.Fatal(err)
	}
	one := shape.Shape{Schema: schema(t, `{"type": "object", "properties": {"metadata": {"type": "object"}, "spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}`)}
	several := one
	several.List = true
	s := shape.Schemas{Current: map[string]shape.Shape{"db": one, "each": several}}
	for text, want := range tests {
		program, err := c.Value(text)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := check.Program(program, s); err != nil {
			_, got, _ = strings.Cut(err.Error(), ": ")
		}
		if got != want && (want == "" || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: it says %q, want %q", text, got, want)
		}
	}
}
