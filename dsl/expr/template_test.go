// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

func TestRender(t *testing.T) {
	tests := map[string]struct{ tree, want any }{
		"a plain tree":                      {map[string]any{"a": []any{int64(1), "x", nil, true, 2.5}}, map[string]any{"a": []any{int64(1), "x", nil, true, 2.5}}},
		"an expression keeps its type":      {"${self.spec.replicas}", int64(3)},
		"spaces around make it text":        {" ${self.spec.replicas}", " 3"},
		"in a longer text":                  {"n=${self.spec.replicas}!", "n=3!"},
		"several":                           {"${self.metadata.name}-${self.spec.replicas}${self.spec.paused}/${self.spec.ratio}", "a-3false/2.5"},
		"a list":                            {"${self.spec.ports}", []any{int64(80), int64(443)}},
		"a map":                             {"${{'a': self.spec.ports}}", map[string]any{"a": []any{int64(80), int64(443)}}},
		"null":                              {"${self.spec.nothing}", nil},
		"a map within a map":                {"${{'a': {'b': 1}}.a.b}", int64(1)},
		"a brace in a text":                 {"${'}' + \"{\"}", "}{"},
		"an escaped quote":                  {`${'\'}' + "\"}"}`, `'}"}`},
		"a raw text":                        {`${r'\' + R"}\"}x`, `\}\x`},
		"raw bytes":                         {`${string(br'\') + '}'}`, `\}`},
		"bytes":                             {`${string(b'}\'')}`, `}'`},
		"a name that ends like a prefix":    {`${self.spec.flag == 'yes' ? {'r':'}'}.r : 'a'}`, "}"},
		"triple quotes":                     {"${'''}'\"''' + \"\"\"}\"\"\"}", "}'\"}"},
		"triple quotes over lines":          {"${'''}\n}'''}", "}\n}"},
		"raw triple quotes":                 {`${r'''\''' + 'x'}`, `\x`},
		"a comment":                         {"${1 // } it's\n + 1}", int64(2)},
		"two slashes in a text":             {"${'http://x'}", "http://x"},
		"the sign itself":                   {"$${self.x} $$ $ $x", "${self.x} $$ $ $x"},
		"the sign itself and an expression": {"$${a}${self.metadata.name}$${b}", "${a}a${b}"},
		"a dollar before the sign itself":   {"$$${a}", "$${a}"},
		"over several lines":                {"a: ${self.metadata.name}\nb: ${\n  self.spec.replicas\n}\n", "a: a\nb: 3\n"},
		"a key":                             {map[string]any{"${self.metadata.name}-x": "y"}, map[string]any{"a-x": "y"}},
		"a key with the sign itself":        {map[string]any{"$${a}": "y"}, map[string]any{"${a}": "y"}},
		"what is not there is left out":     {map[string]any{"a": "${self.?x}", "b": []any{"${self.?x}", "${self.?spec.?flag}"}}, map[string]any{"b": []any{"yes"}}},
		"also within an expression":         {"${[self.?x, self.?spec.?flag]}", []any{"yes"}},
		"nothing at all":                    {"${self.?x}", expr.None},
		"a time":                            {"${timestamp('2030-01-02T03:04:05+01:00')}", "2030-01-02T02:04:05Z"},
		"a duration, bytes and a quantity":  {"${[dyn(duration('90m')), dyn(b'x'), dyn(quantity('1Gi'))]}", []any{"1h30m0s", "eA==", "1Gi"}},
		"a text that is empty":              {"", ""},
	}
	c := compiler(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tmpl, err := c.Template(test.tree)
			if err != nil {
				t.Fatal(err)
			}
			got, err := tmpl.Render(expr.Scope{Subject: subject()})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.Comparer(func(a, b struct{}) bool { return true })); test.want != expr.None && diff != "" || test.want == expr.None && got != expr.None {
				t.Errorf("rendered (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRenderFails(t *testing.T) {
	tests := map[string]struct {
		tree    any
		want    string
		missing bool
	}{
		"a missing key":         {map[string]any{"a": []any{"${self.x.y}"}}, "evaluating spec.a.0: self.x is not set", true},
		"a missing element":     {"${self.spec.ports[7]}", "evaluating spec: index out of bounds: 7", true},
		"a list in a text":      {"a${self.spec.ports}", "evaluating spec: self.spec.ports is a list, which cannot be part of a text", false},
		"null in a text":        {"a${self.spec.nothing}", "evaluating spec: self.spec.nothing is null, which cannot be part of a text", false},
		"nothing in a text":     {"a${self.?x}", "evaluating spec: self.?x is nothing, which cannot be part of a text", false},
		"a key that is no text": {map[string]any{"${self.spec.replicas}": 1}, "evaluating spec.${self.spec.replicas}: the key is a whole number, want text", false},
		"a map with other keys": {"${{1: 2}}", "evaluating spec: a key of a map is a whole number, want text", false},
		"a number without end":  {"${1.0 / 0.0}", "evaluating spec: the number +Inf cannot be written", false},
		"a type":                {"${type(1)}", "evaluating spec: the result is a type, which cannot be written", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tmpl, err := compiler(t).Template(test.tree, "spec")
			if err != nil {
				t.Fatal(err)
			}
			_, err = tmpl.Render(expr.Scope{Subject: subject()})
			if err == nil || err.Error() != test.want || errors.Is(err, expr.ErrMissing) != test.missing {
				t.Errorf("Render() = %v, want %s", err, test.want)
			}
		})
	}
}

// faults writes the faults of a configuration as "path line:column: message".
func faults(t *testing.T, err error) (out []string) {
	t.Helper()
	var all []error
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	} else if err != nil {
		all = []error{err}
	}
	for _, err := range all {
		fault, ok := errors.AsType[*shape.Misfit](err)
		if !ok {
			t.Fatalf("%v is no shape.Misfit", err)
		}
		out = append(out, fmt.Sprintf("%s %d:%d: %s", strings.Join(fault.Path, "."), fault.Line, fault.Column, fault.Message))
	}
	return out
}

func TestFaultsOfATemplateAreShownWhereTheyAre(t *testing.T) {
	tests := map[string]struct {
		tree any
		want []string
	}{
		"no closing brace":               {"ab ${self.x", []string{"spec 1:4: ${ has no closing }"}},
		"no closing brace in a map":      {"${{'a': 1}", []string{"spec 1:1: ${ has no closing }"}},
		"no closing quote":               {"ä ${self.x == 'a}", []string{"spec 1:15: the text that begins here has no closing '"}},
		"no closing quote in line three": {"a\nb\n ${self.x == \"a}\n", []string{"spec 3:14: the text that begins here has no closing \""}},
		"a quote ends with its line":     {"${self.x == 'a\n' }", []string{"spec 1:13: the text that begins here has no closing '"}},
		"in the second of two":           {"ä${self.x} ${slef.x}", []string{`spec 1:14: unknown variable "slef" (did you mean "self"?)`}},
		"in each of two":                 {"${slef.x}\n${  slef.y}", []string{`spec 1:3: unknown variable "slef" (did you mean "self"?)`, `spec 2:5: unknown variable "slef" (did you mean "self"?)`}},
		"in another line of one":         {"x\n  ${self.x ==\n 1 && slef}", []string{`spec 3:7: unknown variable "slef" (did you mean "self"?)`}},
		"in a list and a key":            {map[string]any{"a": []any{"x", "${slef}"}, "${foo()}": 1}, []string{`spec.${foo()} 1:3: unknown function "foo"`, `spec.a.1 1:3: unknown variable "slef" (did you mean "self"?)`}},
		"nothing":                        {"${}", []string{"spec 1:3: the expression is empty"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := compiler(t).Template(test.tree, "spec")
			if diff := cmp.Diff(test.want, faults(t, err)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsRenderedBelongsToTheCaller(t *testing.T) {
	tmpl, err := compiler(t).Template(map[string]any{"plain": map[string]any{"a": []any{"x"}}, "spec": "${self.spec}", "params": "${params}"})
	if err != nil {
		t.Fatal(err)
	}
	r, params := subject(), dsl.Params{"a": map[string]any{"b": "c"}}
	before, _ := json.Marshal([]any{r.Object.Object, params})
	for range 2 {
		value, err := tmpl.Render(expr.Scope{Subject: r, Params: params})
		if err != nil {
			t.Fatal(err)
		}
		got := value.(map[string]any)
		if plain := got["plain"].(map[string]any)["a"].([]any); plain[0] != "x" {
			t.Errorf("the template was changed to %v", plain)
		}
		got["plain"].(map[string]any)["a"].([]any)[0] = "changed"
		got["spec"].(map[string]any)["ports"].([]any)[0] = "changed"
		got["params"].(map[string]any)["a"].(map[string]any)["b"] = "changed"
	}
	if after, _ := json.Marshal([]any{r.Object.Object, params}); string(after) != string(before) {
		t.Errorf("the request was changed:\n%s\n%s", before, after)
	}
}

func TestUsesOfATemplate(t *testing.T) {
	tmpl, err := compiler(t).Template(map[string]any{"${cause}": []any{"a${old.x}"}})
	if err != nil {
		t.Fatal(err)
	}
	if !tmpl.Uses(expr.Old) || !tmpl.Uses(expr.Cause) || tmpl.Uses(expr.Self) || len(tmpl.Programs()) != 2 {
		t.Errorf("it uses old %v, cause %v, self %v in %d programs", tmpl.Uses(expr.Old), tmpl.Uses(expr.Cause), tmpl.Uses(expr.Self), len(tmpl.Programs()))
	}
}

// deployment is a template like those that operators have.
const deployment = `{
  "apiVersion": "apps/v1", "kind": "Deployment",
  "metadata": {"name": "${self.metadata.name}", "labels": {"app": "web", "app.kubernetes.io/instance": "${self.metadata.name}"}},
  "spec": {
    "replicas": "${self.?spec.?replicas.orValue(1)}",
    "selector": {"matchLabels": {"app": "web"}},
    "template": {
      "metadata": {"labels": {"app": "web"}, "annotations": {"example.com/config": "${hash(self.spec.ports)}"}},
      "spec": {"containers": [{
        "name": "web", "image": "registry.example.com/web:${self.spec.flag}", "args": ["--verbose", "--limit=10"],
        "ports": "${self.spec.ports.map(p, {'containerPort': p})}",
        "resources": {"limits": {"memory": "100Mi", "cpu": "1"}}
      }]}
    }
  }
}`

func tree(t testing.TB, text string) any {
	t.Helper()
	var out any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func BenchmarkRender(b *testing.B) {
	tmpl, err := compiler(b).Template(tree(b, deployment))
	if err != nil {
		b.Fatal(err)
	}
	s := expr.Scope{Subject: subject()}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tmpl.Render(s); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRenderTree renders an expression that is a large part of the object.
func BenchmarkRenderTree(b *testing.B) {
	tmpl, err := compiler(b).Template("${self.spec}")
	if err != nil {
		b.Fatal(err)
	}
	s := expr.Scope{Subject: subject()}
	s.Subject.Object.Object["spec"] = tree(b, deployment)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tmpl.Render(s); err != nil {
			b.Fatal(err)
		}
	}
}
