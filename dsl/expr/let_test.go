// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
)

// lets compiles lets that are given as name = expression.
func lets(t testing.TB, c *expr.Compiler, around *expr.Lets, named ...string) (*expr.Lets, []expr.LetFault) {
	t.Helper()
	var all []expr.Let
	for i, one := range named {
		name, text, found := strings.Cut(one, " = ")
		if !found {
			t.Fatalf("%s has no =", one)
		}
		all = append(all, expr.Let{Name: name, Text: text, At: fmt.Sprintf("op.yaml:%d:1", i+1)})
	}
	return c.Lets(around, all)
}

// withLets returns a compiler that knows lets, and has variables besides.
func withLets(t testing.TB, named []string, variables ...string) (*expr.Compiler, *expr.Lets) {
	t.Helper()
	c := compiler(t)
	known, faults := lets(t, c, nil, named...)
	if len(faults) > 0 {
		t.Fatalf("%s: %v", faults[0].Name, faults[0].Err)
	}
	out, err := c.WithLets(known)
	if err != nil {
		t.Fatal(err)
	}
	if out, err = out.With(variables...); err != nil {
		t.Fatal(err)
	}
	return out, known
}

func value(t testing.TB, c *expr.Compiler, text string) *expr.Program {
	t.Helper()
	p, err := c.Value(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return p
}

func TestALetIsAVariableOfOtherExpressions(t *testing.T) {
	tests := map[string]struct {
		lets []string
		text string
		want any
	}{
		"alone":                              {[]string{"n = self.spec.replicas"}, "n", int64(3)},
		"in ${…}":                            {[]string{"n = ${self.spec.replicas}"}, "n + 1", int64(4)},
		"a constant":                         {[]string{"limit = 5"}, "self.spec.replicas < limit", true},
		"a let of a let":                     {[]string{"n = self.spec.replicas", "more = n + 1"}, "more + n", int64(7)},
		"in any order":                       {[]string{"most = more + 1", "more = n + 1", "n = self.spec.replicas"}, "most", int64(5)},
		"a part of an object":                {[]string{"spec = self.spec"}, "spec.ports[1]", int64(443)},
		"a field that may not be there":      {[]string{"spec = self.spec"}, "has(spec.missing) || spec.?missing.hasValue()", false},
		"an optional value":                  {[]string{"host = self.spec.?host"}, "host.orValue('none')", "none"},
		"an optional value that goes on":     {[]string{"host = self.spec.?host"}, "host.?name.orValue('none')", "none"},
		"a list with a macro":                {[]string{"ports = self.spec.ports"}, "ports.exists(p, p == 443)", true},
		"within a macro":                     {[]string{"least = self.spec.replicas * 100"}, "self.spec.ports.filter(p, p > least)", []any{int64(443)}},
		"the same names in macros of both":   {[]string{"big = self.spec.ports.filter(p, p > 100)"}, "self.spec.ports.all(p, p in big || p == 80)", true},
		"a macro's own name hides it":        {[]string{"p = 'let'"}, "self.spec.ports.map(p, p)", []any{int64(80), int64(443)}},
		"a dot before its name does not":     {[]string{"p = 'let'"}, "self.spec.ports.map(p, .p)", []any{"let", "let"}},
		"the name of a function":             {[]string{"size = self.spec.replicas"}, "size + size([1, 2])", int64(5)},
		"with a comment":                     {[]string{"n = self.spec.replicas // how many"}, "n * 2", int64(6)},
		"over lines":                         {[]string{"n = self.spec.replicas\n  + 1"}, "n * 2", int64(8)},
		"an operator that binds less":        {[]string{"sum = 1 + 2"}, "sum * 2", int64(6)},
		"a map of mixed values":              {[]string{"all = {'a': 1, 'b': self.spec}"}, "all.b.replicas", int64(3)},
		"a quantity":                         {[]string{"memory = quantity(self.spec.memory)"}, "memory.isGreaterThan(quantity('1Mi'))", true},
		"one that fails and does not decide": {[]string{"gone = self.spec.missing == 1"}, "self.spec.replicas == 3 || gone", true},
		"one that fails and is not used":     {[]string{"gone = self.spec.missing == 1", "n = 1"}, "n", int64(1)},
		"a parameter":                        {[]string{"limit = params.limit"}, "limit", int64(5)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, _ := withLets(t, test.lets)
			got, err := value(t, c, test.text).Eval(expr.Scope{Subject: subject(), Params: dsl.Params{"limit": int64(5)}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFaultsOfLets(t *testing.T) {
	tests := map[string]struct {
		around, lets []string
		want         []string
	}{
		"a circle of one":           {nil, []string{"a = a + 1"}, []string{"a: the lets need each other in a circle: a → a"}},
		"a circle":                  {nil, []string{"x = b", "a = b + 1", "b = c", "c = [a].size()"}, []string{"a: the lets need each other in a circle: a → b → c → a"}},
		"two circles":               {nil, []string{"a = b", "b = a", "c = d", "d = c"}, []string{"a: the lets need each other in a circle: a → b → a", "c: the lets need each other in a circle: c → d → c"}},
		"a macro makes no circle":   {nil, []string{"a = [1].map(b, b)", "b = a"}, nil},
		"a letter that CEL has not": {nil, []string{"my-name = 1"}, []string{`my-name: "my-name" is no name for a let: want letters, digits and _, as in wanted`}},
		"a word of CEL":             {nil, []string{"in = 1"}, []string{`in: "in" is no name for a let: it is a word of CEL`}},
		"a variable":                {nil, []string{"self = 1"}, []string{`self: "self" is no name for a let: it is a variable already`}},
		"a variable of elsewhere":   {nil, []string{"item = 1"}, []string{`item: "item" is no name for a let: it is a variable already`}},
		"a type":                    {nil, []string{"string = 1"}, []string{`string: "string" is no name for a let: it is a type or a library of CEL`}},
		"a library":                 {nil, []string{"math = 1"}, []string{`math: "math" is no name for a let: it is a type or a library of CEL`}},
		"a let around it":           {[]string{"a = 1"}, []string{"a = 2"}, []string{"a: there is a let a already (at op.yaml:1:1), and another one would hide it: give this one a name of its own"}},
		"an unknown name":           {nil, []string{"wanted = 1", "b = wantedx"}, []string{`b: 1:1: unknown variable "wantedx" (did you mean "wanted"?)`}},
		"a let of another kind":     {nil, []string{"a = 'x'", "b = a + 1"}, []string{"b: 1:3: cannot use + with text and a whole number"}},
		"text around an expression": {nil, []string{"a = ${self.metadata.name}-web"}, []string{"a: 1:1: want one expression: put all of it into one ${…}"}},
		"only the first fault":      {nil, []string{"a = self.", "b = a + 1"}, []string{"a: 1:6: unexpected end of the expression"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := compiler(t)
			var around *expr.Lets
			if test.around != nil {
				around, _ = lets(t, c, nil, test.around...)
			}
			_, faults := lets(t, c, around, test.lets...)
			var got []string
			for _, f := range faults {
				got = append(got, f.Name+": "+f.Err.Error())
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFaultsOfUsesOfLets(t *testing.T) {
	tests := map[string]struct {
		lets, variables []string
		text, want      string
	}{
		"a mistyped name":  {[]string{"wanted = 1"}, nil, "wantde + 1", `1:1: unknown variable "wantde" (did you mean "wanted"?)`},
		"the wrong kind":   {[]string{"name = 'x'"}, nil, "1 + name", "1:3: cannot use + with a whole number and text"},
		"too long":         {[]string{"long = '" + strings.Repeat("x", 2000) + "'"}, nil, "[long, long, long]", "1:2: with its lets written out the expression has 6021 characters, and the most is 5000"},
		"a macro's clash":  {[]string{"n = self.spec.replicas"}, nil, "[1].map(self, n)", "1:15: let n (at op.yaml:1:1) reads self, and a macro around it has a variable of this name: give that another name"},
		"doubled each way": {doubling(40), nil, "l40", "1:1: with its lets written out"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := compiler(t)
			known, faults := lets(t, c, nil, test.lets...)
			with, err := c.WithLets(known)
			if err != nil {
				t.Fatal(err)
			}
			_, err = with.Value(test.text)
			for _, f := range faults { // of lets themselves
				err = errors.Join(err, f.Err)
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
}

// doubling returns lets. Each of them uses the let before it twice.
func doubling(n int) []string {
	out := []string{"l0 = self.spec.replicas"}
	for i := range n {
		out = append(out, fmt.Sprintf("l%d = l%d + l%d", i+1, i, i))
	}
	return out
}

func TestALetOfAnEntryIsNotThereElsewhere(t *testing.T) {
	c := compiler(t)
	entry, err := c.With("item")
	if err != nil {
		t.Fatal(err)
	}
	known, faults := lets(t, entry, nil, "label = item.name + '-x'")
	if len(faults) > 0 {
		t.Fatal(faults[0].Err)
	}
	without, err := c.WithLets(known)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := without.Value("label"); err == nil || err.Error() != "1:1: let label (at op.yaml:1:1) reads item, which is not there here" {
		t.Errorf("without an entry: %v", err)
	}
	with, err := without.With("item")
	if err != nil {
		t.Fatal(err)
	}
	got, err := value(t, with, "label").Eval(expr.Scope{Subject: subject(), Vars: map[string]any{"item": map[string]any{"name": "a"}}})
	if got != "a-x" || err != nil {
		t.Errorf("with an entry: %v, %v", got, err)
	}
}

// TestWhatALetReadsIsWhatItsUserReads holds that an expression with lets reads what it would read if they were written out.
func TestWhatALetReadsIsWhatItsUserReads(t *testing.T) {
	named := []string{
		"spec = self.spec", "wanted = spec.replicas > 0", "up = ready(children.web) && children.web.status.replicas > 1",
		"secret = related.password.data", "plans = indexes.plans[spec.plan]", "late = now > timestamp('2030-01-01T00:00:00Z')", "before = old.spec",
	}
	c, _ := withLets(t, named)
	for text, direct := range map[string]string{
		"wanted":                      "self.spec.replicas > 0",
		"spec.?image.orValue('none')": "self.spec.?image.orValue('none')",
		"has(spec.image)":             "has(self.spec.image)",
		"up && wanted":                "ready(children.web) && children.web.status.replicas > 1 && self.spec.replicas > 0",
		"secret.key":                  "related.password.data.key",
		"plans.size()":                "indexes.plans[self.spec.plan].size()",
		"late":                        "now > timestamp('2030-01-01T00:00:00Z')",
		"before.replicas":             "old.spec.replicas",
		"[1].exists(spec, spec == 1)": "[1].exists(x, x == 1)",
	} {
		got, want := value(t, c, text), value(t, c, direct)
		if diff := cmp.Diff(want.Reads(), got.Reads()); diff != "" {
			t.Errorf("%s reads (-written out +with lets):\n%s", text, diff)
		}
		for _, variable := range []string{expr.Self, expr.Children} {
			if diff := cmp.Diff(want.Fields(variable), got.Fields(variable)); diff != "" {
				t.Errorf("%s reads of %s (-written out +with lets):\n%s", text, variable, diff)
			}
		}
		for _, variable := range []string{expr.Old, expr.Now, expr.Related, expr.Cause} {
			if got.Uses(variable) != want.Uses(variable) {
				t.Errorf("%s uses %s: %v", text, variable, got.Uses(variable))
			}
		}
	}
}
