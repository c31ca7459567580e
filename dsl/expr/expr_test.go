// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
)

func compiler(t testing.TB) *expr.Compiler {
	t.Helper()
	c, err := expr.New()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func subject() *dsl.Subject {
	return &dsl.Subject{
		Object: &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "a", "labels": map[string]any{"app.kubernetes.io/name": "x"}},
			"spec": map[string]any{
				"replicas": int64(3), "ratio": 2.5, "paused": false, "nothing": nil,
				"ports": []any{int64(80), int64(443)}, "memory": "100Mi", "flag": "yes",
				"url": "https://example.com/path", "ip": "10.0.0.1", "cidr": "10.0.0.0/8",
			},
		}},
		Old:   map[string]any{"spec": map[string]any{"replicas": int64(1)}},
		Diff:  []dsl.Change{{Op: dsl.Changed, Path: dsl.Path{"spec", "replicas"}, Old: int64(1), New: int64(3)}},
		Cause: dsl.Update,
	}
}

func TestPredicates(t *testing.T) {
	tests := map[string]struct {
		text string
		want bool
	}{
		"a whole number":                      {"self.spec.replicas == 3", true},
		"a whole number against a fraction":   {"self.spec.replicas > 2.5", true},
		"a fraction":                          {"self.spec.ratio > 2", true},
		"a boolean, known only when it runs":  {"self.spec.paused", false},
		"null":                                {"self.spec.nothing == null", true},
		"a list":                              {"self.spec.ports.exists(p, p == 443)", true},
		"a label with dots":                   {"self.metadata.labels['app.kubernetes.io/name'] == 'x'", true},
		"a field that is not there":           {"has(self.spec.missing)", false},
		"an optional field":                   {"self.?spec.?missing.?more.orValue(7) == 7", true},
		"the old value":                       {"old.spec.replicas < self.spec.replicas", true},
		"the difference":                      {"diff.exists(d, d.path == 'spec.replicas' && d.op == 'change' && d.old == 1 && d.new == 3)", true},
		"the cause":                           {"cause == 'update'", true},
		"a parameter":                         {"params.limit >= self.spec.replicas", true},
		"over several lines":                  {"self.spec.replicas == 3\n  && cause != 'delete'", true},
		"Kubernetes' quantities":              {"quantity(self.spec.memory).isGreaterThan(quantity('1Mi'))", true},
		"Kubernetes' regular expressions":     {"self.spec.memory.find('[0-9]+') == '100'", true},
		"Kubernetes' URLs":                    {"url(self.spec.url).getHostname() == 'example.com'", true},
		"Kubernetes' addresses":               {"cidr(self.spec.cidr).containsIP(self.spec.ip)", true},
		"Kubernetes' lists":                   {"self.spec.ports.sum() == 523", true},
		"Kubernetes' formats":                 {"!format.dns1123Label().validate(self.metadata.name).hasValue()", true},
		"strings":                             {"'%s-%d'.format([self.metadata.name, self.spec.replicas]) == 'a-3'", true},
		"sets":                                {"sets.contains(self.spec.ports, [80])", true},
		"a macro's own name hides a variable": {"[1].all(self, self == 1)", true},
	}
	c := compiler(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := c.Predicate(test.text)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Bool(expr.Scope{Subject: subject(), Params: dsl.Params{"limit": int64(5)}})
			if err != nil || got != test.want {
				t.Errorf("%s: %v, %v, want %v", test.text, got, err, test.want)
			}
		})
	}
}

func TestARequestMayBeAlmostEmpty(t *testing.T) {
	p, err := compiler(t).Predicate("old == null && size(diff) == 0 && size(self) == 0 && size(params) == 0 && cause == ''")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.Bool(expr.Scope{Subject: &dsl.Subject{}}); err != nil || !got {
		t.Errorf("Bool() = %v, %v, want true", got, err)
	}
}

func TestEvaluationErrorsSayWhatIsWrong(t *testing.T) {
	r := subject()
	r.Object.Object["long"] = strings.Repeat("a", 100_000)
	r.Object.Object["list"] = make([]any, 1000)
	tests := map[string]struct{ text, want string }{
		"a missing key":          {"self.spec.missing > 1", "evaluating when: self.spec.missing is not set"},
		"a number":               {"self.spec.replicas", "evaluating when: the result is a whole number, want true or false"},
		"a text":                 {"self.spec.flag", "evaluating when: the result is text, want true or false"},
		"a list":                 {"self.spec.ports", "evaluating when: the result is a list, want true or false"},
		"a map":                  {"self.spec", "evaluating when: the result is a map, want true or false"},
		"null":                   {"self.spec.nothing", "evaluating when: the result is null, want true or false"},
		"kinds do not match":     {"self.spec.flag > 1", "evaluating when: > does not go with the kinds of its values (string(…), int(…) and double(…) convert them)"},
		"an operand is no truth": {"self.spec.replicas && true", "evaluating when: && does not go with the kinds of its values"},
		"too much work": {
			"self.list.all(a, !self.long.contains('bbbbbbbbbb'))",
			"evaluating when: it costs more than one evaluation may (is it a loop over a long list?)",
		},
	}
	c := compiler(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := c.Predicate(test.text)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Predicate("when", nil)(r)
			if err == nil || err.Error() != test.want || got {
				t.Errorf("%s: %v, %v, want %s", test.text, got, err, test.want)
			}
		})
	}
}

func TestFaultsOfTheTextAreShownWhereTheyAre(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"an unknown variable":      {"slef.spec", `1:1: unknown variable "slef" (did you mean "self"?)`},
		"an unknown function":      {"foo(1)", `1:1: unknown function "foo"`},
		"an end too early":         {"self.x ==", "1:10: unexpected end of the expression"},
		"a text that is no result": {"cause", "1:1: the result is text, want true or false"},
		"kinds that never match":   {"cause > 1", "1:7: cannot use > with text and a whole number"},
		"several in several lines": {
			"'ä' == slef ||\n  'ä' == b",
			`1:8: unknown variable "slef" (did you mean "self"?); 2:10: unknown variable "b" (want one of self, old, diff, cause, event, params, now, children, related, indexes, handlers)`,
		},
	}
	c := compiler(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := c.Predicate(test.text)
			faulty, ok := errors.AsType[*expr.Error](err)
			if !ok {
				t.Fatalf("Predicate() = %v, want an expr.Error", err)
			}
			if diff := cmp.Diff(test.want, faulty.Error()); diff != "" {
				t.Errorf("issues (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPredicateStandsAloneOrInOneExpression(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"alone":                     {"self.spec.replicas == 3", ""},
		"in an expression":          {"${self.spec.replicas == 3}", ""},
		"a block of YAML":           {"${\n  self.spec.replicas == 3\n}\n", ""},
		"a text with the sign":      {"self.spec.flag != '${x}'", ""},
		"a fault within":            {"${slef.x}", `1:3: unknown variable "slef" (did you mean "self"?)`},
		"a fault in a later line":   {"${true &&\n slef.x}", `2:2: unknown variable "slef" (did you mean "self"?)`},
		"a result of another kind":  {"${cause}", "1:3: the result is text, want true or false"},
		"two expressions":           {"${true}${true}", "1:1: want one expression: put all of it into one ${…}"},
		"text around an expression": {"${true}!", "1:1: want one expression: put all of it into one ${…}"},
		"nothing that ends it":      {"${true", "1:1: ${ has no closing }"},
		"nothing in it":             {"${}", "1:3: the expression is empty"},
	}
	c := compiler(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := c.Predicate(test.text)
			if err != nil || test.want != "" {
				if err == nil || err.Error() != test.want {
					t.Errorf("Predicate() = %v, want %s", err, test.want)
				}
				return
			}
			if holds, err := p.Bool(expr.Scope{Subject: subject()}); !holds || err != nil {
				t.Errorf("Bool() = %v, %v, want true", holds, err)
			}
		})
	}
}

func TestUses(t *testing.T) {
	p, err := compiler(t).Predicate("has(old.spec) && diff.exists(d, d.op == 'add')")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{expr.Self: false, expr.Old: true, expr.Diff: true, expr.Cause: false, expr.Params: false}
	for variable, uses := range want {
		if p.Uses(variable) != uses {
			t.Errorf("Uses(%s) = %v, want %v", variable, p.Uses(variable), uses)
		}
	}
	if want := "has(old.spec) && diff.exists(d, d.op == 'add')"; p.Text() != want {
		t.Errorf("Text() = %q, want %q", p.Text(), want)
	}
}

func TestAProgramServesSeveralGoroutines(t *testing.T) {
	c := compiler(t)
	p, err := c.Predicate("self.spec.ports.all(p, p > 0) && diff.size() == 1")
	if err != nil {
		t.Fatal(err)
	}
	shared := subject()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if _, err := c.Predicate("self.a == 1"); err != nil {
				t.Error(err)
			}
			for range 100 {
				if got, err := p.Bool(expr.Scope{Subject: shared}); err != nil || !got {
					t.Errorf("Bool() = %v, %v, want true", got, err)
				}
			}
		})
	}
	group.Wait()
}

func BenchmarkBool(b *testing.B) {
	p, err := compiler(b).Predicate("self.spec.replicas > 0 && cause != 'delete'")
	if err != nil {
		b.Fatal(err)
	}
	r := subject()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Bool(expr.Scope{Subject: r}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	c := compiler(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Predicate("self.spec.replicas > 0 && cause != 'delete'"); err != nil {
			b.Fatal(err)
		}
	}
}
