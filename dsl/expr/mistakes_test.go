// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
)

// sayMistakes holds what is said of expressions that are at fault.
func sayMistakes(t *testing.T, tests map[string]struct{ text, want string }) {
	t.Helper()
	c := compiler(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := c.Value(test.text)
			if err == nil || err.Error() != test.want {
				t.Errorf("%s:\n got %v\nwant %s", test.text, err, test.want)
			}
		})
	}
}

// Mistakes of people who know other languages are reported in our own words, with the text to write instead.
func TestTheCommonestMistakesAreSaidInPlainWords(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"and":               {"self.a and self.b", "1:8: write && for and"},
		"or":                {"self.a == 1\n  or self.b == 2", "2:3: write || for or"},
		"not":               {"not self.a", "1:1: write ! for not"},
		"not with brackets": {"not(self.a)", "1:1: write ! for not"},

		"one = to compare": {"self.a = 3", "1:8: = is no operator: == compares"},

		"three = to compare": {"self.a === 3", "1:8: === is no operator: == compares"},

		"<> to compare":  {"self.a <> 3", "1:8: <> is no operator: != compares"},
		"!== to compare": {"self.a !== 3", "1:8: !== is no operator: != compares"},

		"one &":        {"self.a & self.b", "1:8: & is no operator: && means and"},
		"one |":        {"'ä' == self.a | self.b", "1:15: | is no operator: || means or"},
		"two mistakes": {"self.a = 1 & self.b", "1:8: = is no operator: == compares; 1:12: & is no operator: && means and"},

		"an optional field of other languages": {"self.spec?.a", "1:10: ?. is no operator: an optional field is written .?"},

		"a template's sign": {"${self.a}", "1:1: an expression has no $ in it (does it stand within ${…} already?)"},

		"no closing bracket":           {"(self.a", "1:1: ( has no closing )"},
		"no closing bracket of a call": {"ready(self.l[0)", "1:15: [ is closed by )"},
		"no closing bracket of a list": {"self.a in [1, 2", "1:11: [ has no closing ]"},
		"no closing bracket of a map":  {"{'a': 1", "1:1: { has no closing }"},
		"a bracket too many":           {"self.a)", "1:7: ) closes nothing"},
		"brackets within a text":       {`"(" + r'\' + (1`, "1:14: ( has no closing )"},

		"no closing quote":                      {"self.name == 'x", "1:14: the text that begins here has no closing '"},
		"no closing quote in a line of several": {"self.a == 1 &&\nself.name == \"x\n && true", `2:14: the text that begins here has no closing "`},
		"no closing triple quotes":              {"'''a\nb''", "1:1: the text that begins here has no closing '"},
		"a quote that is written twice":         {"self.a == 'it''s'", `1:15: a quote within a text is written \'`},

		"nothing":        {"  ", "1:3: the expression is empty"},
		"only a comment": {"// x", "1:5: the expression is empty"},

		"a misspelt variable":           {"1 == 1 && slef.x", `1:11: unknown variable "slef" (did you mean "self"?)`},
		"a variable that there is not":  {"foo", `1:1: unknown variable "foo" (want one of self, old, diff, cause, event, params, now, children, related, indexes, handlers)`},
		"a constant of other languages": {"self.a == True", `1:11: unknown variable "True" (did you mean "true"?)`},
		"nil":                           {"self.a == nil", `1:11: unknown variable "nil" (did you mean "null"?)`},

		"a misspelt function":                  {"redy(self)", `1:1: unknown function "redy" (did you mean "ready"?)`},
		"a misspelt function behind its value": {"self.a.startWith('x')", `1:8: unknown function "startWith" (did you mean "startsWith"?)`},
		"a function of other languages":        {"len(self.l) > 1", `1:1: unknown function "len" (did you mean "size"?)`},
		"a function that there is not":         {"frobnicate(self)", `1:1: unknown function "frobnicate"`},
		"a misspelt macro":                     {"self.l.exist(p, p > 1)", `1:8: unknown function "exist" (did you mean "exists"?)`},

		"no argument":                           {"ready()", "1:1: ready() wants 1 argument, not 0"},
		"too many arguments":                    {"ready(self, self)", "1:1: ready() wants 1 argument, not 2"},
		"too few arguments behind a value":      {"self.a.startsWith()", "1:8: startsWith() wants 1 argument, not 0"},
		"too few for any of a function's forms": {"self.a.replace('x')", "1:8: replace() wants 2 or 3 arguments, not 1"},
		"too few arguments of a macro":          {"self.l.all(p)", "1:8: all() wants 2 or 3 arguments, not 1"},

		"a function that stands behind its value": {"startsWith(self.a, 'x')", "1:1: startsWith() stands behind its value: write self.a.startsWith('x')"},
		"a function that does not":                {"self.ready()", "1:6: ready() takes its value as an argument: write ready(self)"},
		"one that only lists have":                {"min(1, 2)", "1:1: min() stands behind its value: write x.min(…)"},

		"kinds that do not go together": {"1 + 'a'", "1:3: cannot use + with a whole number and text"},
		"a value of a library":          {"string(quantity('1Gi'))", "1:1: cannot use string() with a quantity"},
		"kinds that are compared":       {"cause != 1", "1:7: cannot use != with text and a whole number"},

		"a number before a ?:":          {"1 ? 'a' : 'b'", "1:3: want true or false, found a whole number"},
		"outcomes that are no numbers":  {"self.x ? 1 : 'a'", "1:8: both outcomes of ?: must be of one kind, not a whole number and text (dyn(…) around each lifts that)"},
		"a macro that asks for numbers": {"[1].filter(x, x)", "1:5: want true or false, found a whole number"},
		"outcomes of two kinds":         {"true ? 1 : 'a'", "1:6: both outcomes of ?: must be of one kind, not a whole number and text (dyn(…) around each lifts that)"},
		"outcomes that hold two kinds":  {"true ? {'a': [1]} : {'a': ['b']}", "1:6: both outcomes of ?: must be of one kind, not map(string, list(int)) and map(string, list(string)) (dyn(…) around each lifts that)"},

		"a number for a condition": {"1 && true", "1:1: want true or false, found a whole number"},

		"a field of null":   {"null.x", "1:6: null has no fields"},
		"a field of text":   {"cause.x", "1:7: text has no fields"},
		"a field of a list": {"diff.x", "1:6: a list has no fields"},

		"a macro over text":     {"cause.all(c, c == 'x')", "1:1: want a list or a map, found text"},
		"a macro over a number": {"size(self).all(c, c == 1)", "1:1: want a list or a map, found a whole number"},

		"has() of a variable": {"has(self)", "1:5: has() wants a field, as in has(self.spec.x)"},
		"has() of an element": {"has(self.spec['x']) && self.y", "1:5: has() wants a field, as in has(self.spec.x)"},
		"has() of nothing":    {"has()", "1:1: has() wants 1 argument, not 0"},

		"a bad duration": {"duration('x')", "1:10: this is no duration (want one as 1h30m0s)"},
		"a bad time":     {"timestamp('x')", "1:11: this is no time (want one as 2030-01-31T12:00:00Z)"},
		"a bad pattern":  {"cause.matches('(')", "1:15: this is no regular expression"},
	}
	sayMistakes(t, tests)
}

// A script in a ConfigMap has variables of its own in ${…}.
func TestExpansionsOfTheShellAreReportedWithTheTextToWrite(t *testing.T) {
	const foreign = "1:1: this is no expression: where it is for another program, as the shell, write $${…} for ${…}"
	sayMistakes(t, map[string]struct{ text, want string }{
		"a variable":        {"HOME", `1:1: unknown variable "HOME" (one of another program, as the shell, is written $${HOME})`},
		"with a default":    {"VAR:-x y", foreign},
		"an error":          {"VAR:?is not set", foreign},
		"a part":            {"VAR:0:3", foreign},
		"without an ending": {"file%%.*", foreign},
		"how many":          {"#list[@]", foreign},
		"all of an array":   {"list[@]", foreign},
		"all arguments":     {"@", foreign},
		"no shell":          {"self.a ? 1 :-", "1:14: unexpected end of the expression"},
		"no shell at all":   {"a:b", "1:2: unexpected :"},
	})
}

// For the rest the place is ours, and the words may be those of CEL.
func TestOtherMistakesHaveAPlace(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"maps of two kinds":               {"{'a': {'b': 1}, 'c': {'d': 'x'}}", "1:22: in one list or map all are of one kind, and this is map(string, string), not map(string, int) (dyn(…) around it lifts that)"},
		"a list of two kinds":             {"[1, 'a']", "1:5: in one list or map all are of one kind, and this is text, not a whole number (dyn(…) around it lifts that)"},
		"a map of text and a map":         {"{'path': 'x', 'backend': {'a': 1}}", "1:26: in one list or map all are of one kind, and this is a map, not text (dyn(…) around it lifts that)"},
		"two kinds after an unknown one":  {"[self.a, 'x', 1]", "1:15: in one list or map all are of one kind, and this is a whole number, not text (dyn(…) around it lifts that)"},
		"keys of two kinds":               {"{'a': 1, 2: 2}", "1:10: in one list or map all are of one kind, and this is a whole number, not text (dyn(…) around it lifts that)"},
		"a bad name within a list":        {"['x', 'y', slef]", "1:12: unknown variable \"slef\" (did you mean \"self\"?)"},
		"an end too early":                {"self.a ==", "1:10: unexpected end of the expression"},
		"no else":                         {"true ? 1", "1:9: unexpected end of the expression"},
		"a sign that means nothing":       {"self.a ; 1", "1:8: unexpected ;"},
		"two dots":                        {"self..a", "1:6: unexpected ."},
		"a macro without a name":          {"self.l.exists(1, true)", "1:15: argument must be a simple name"},
		"a reserved word":                 {"namespace == 'x'", "1:1: reserved identifier: namespace"},
		"a bad escape":                    {`cause == '\q'`, `1:10: unexpected '\q'`},
		"a name that only looks like one": {"self.and.or.not + self.x =", "1:26: = is no operator: == compares"},
		"bytes in brackets":               {"self['spec'][b'0']", "1:1: invalid qualifier type: types.Bytes"},
	}
	sayMistakes(t, tests)
}

func TestMoreVariablesAreAmongTheNearOnes(t *testing.T) {
	c, err := compiler(t).With("object")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Value("objct.x == 1")
	if want := `1:1: unknown variable "objct" (did you mean "object"?)`; err == nil || err.Error() != want {
		t.Errorf("Value() = %v, want %s", err, want)
	}
}

// What the kind of a value is may be known only when it is there, and it goes with any other until then.
func TestValuesOfAKindThatIsNotKnownGoWithOthers(t *testing.T) {
	c := compiler(t)
	subject := map[string]any{"a": "y", "n": int64(2), "l": []any{map[string]any{"name": "z"}}}
	tests := map[string]struct {
		text string
		want any
	}{
		"first in a list":          {"[self.a, 'x']", []any{"y", "x"}},
		"behind another":           {"['x', self.a]", []any{"x", "y"}},
		"in a map":                 {"{'name': self.a, 'image': 'x'}", map[string]any{"name": "y", "image": "x"}},
		"of an element":            {"self.l.map(i, {'name': i.name, 'image': 'x'})", []any{map[string]any{"name": "z", "image": "x"}}},
		"of another kind":          {"{'a': 'x', 'n': self.n}", map[string]any{"a": "x", "n": int64(2)}},
		"with dyn() around one":    {"{'path': 'x', 'backend': dyn({'a': 1})}", map[string]any{"path": "x", "backend": map[string]any{"a": int64(1)}}},
		"in lists":                 {"[['x'], [self.a]]", []any{[]any{"x"}, []any{"y"}}},
		"that need not be there":   {"{'a': 'x', ?'b': self.?b, ?'c': self.?a}", map[string]any{"a": "x", "c": "y"}},
		"looked for":               {"self.a in ['x', self.a]", true},
		"beside what is formatted": {"{'a': '%s%d'.format(['x', 1]), 'b': self.a}", map[string]any{"a": "x1", "b": "y"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := c.Value(test.text)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Eval(expr.Scope{Subject: &dsl.Subject{Object: &unstructured.Unstructured{Object: subject}}})
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("%s: %v\n%s", test.text, err, diff)
			}
		})
	}
}
