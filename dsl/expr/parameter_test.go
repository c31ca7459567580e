// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl/expr"
)

// TestAnExpressionGivesWhatItsTemplateGives holds that the two forms of a value agree.
func TestAnExpressionGivesWhatItsTemplateGives(t *testing.T) {
	for name, tree := range map[string]any{
		"text":                      "a \"b\" \\ ${'c'}\n\x7f ä $${d}",
		"an expression":             "${self.spec.replicas + 1}",
		"several expressions":       "${self.spec.replicas} of ${self.metadata.name}, ${true}",
		"a comment":                 "${self.spec.replicas // how many\n}",
		"null":                      nil,
		"numbers":                   []any{int64(-3), 1.0, 2.5, 1e30},
		"true":                      true,
		"a list of several types":   []any{"a", int64(1), nil, "${self.spec.ports}"},
		"a map of several types":    map[string]any{"a": "b", "c-d": int64(1), "${self.metadata.name}": []any{true}},
		"an absent value in a list": []any{"a", "${self.spec.?missing}"},
		"an absent value in a map":  map[string]any{"a": "${self.spec.?missing}", "b": "${self.spec.?replicas}"},
		"nothing in it":             map[string]any{"a": map[string]any{}, "b": []any{}},
	} {
		t.Run(name, func(t *testing.T) {
			c := compiler(t)
			template, err := c.Template(tree)
			if err != nil {
				t.Fatal(err)
			}
			want, err := template.Render(expr.Scope{Subject: subject()})
			if err != nil {
				t.Fatal(err)
			}
			got, err := value(t, c, template.Expression()).Eval(expr.Scope{Subject: subject()})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-template +expression):\n%s", template.Expression(), diff)
			}
		})
	}
}

// TestNamesOfAPartAreItsOwn holds that a part knows its parameters alone, and that values know the lets around alone.
func TestNamesOfAPartAreItsOwn(t *testing.T) {
	c := compiler(t)
	outer, faults := lets(t, c, nil, "name = string(self.spec.replicas)", "text = 'outer'")
	if len(faults) > 0 {
		t.Fatal(faults[0].Err)
	}
	text := &expr.Parameter{Schema: spec.StringProperty()}
	inner, faults := c.Parameters(outer, []expr.Let{{Name: "text", Text: "text + name", Parameter: text}})
	if len(faults) > 0 {
		t.Fatal(faults[0].Err)
	}
	within, err := c.WithLets(inner)
	if err != nil {
		t.Fatal(err)
	}
	program := value(t, within, "text + '!'")
	got, err := program.Eval(expr.Scope{Subject: subject()})
	if err != nil || got != "outer3!" {
		t.Errorf("got %v, %v", got, err)
	}
	if paths := program.Reads().Paths; len(paths) != 1 || paths[0].String() != "spec.replicas" {
		t.Errorf("it reads %v", paths)
	}
	for _, name := range []string{"name", "text"} {
		if !outer.Used(name) {
			t.Errorf("the let %s is not used", name)
		}
	}
	if _, err := within.Value("name"); err == nil {
		t.Error("the part knows a let around it")
	}
	if _, err := within.Value("text + 1"); err == nil {
		t.Error("the type of the parameter is not that of its schema")
	}
}

// TestAValueThatDoesNotFitFails holds that a value is judged when it is known, and that the error names the parameter.
func TestAValueThatDoesNotFitFails(t *testing.T) {
	c := compiler(t)
	var seen any
	fits := func(value any) error { seen = value; return errors.New("must be less than 3") }
	known, faults := c.Parameters(nil, []expr.Let{{Name: "n", Text: "self.spec.replicas", At: "op.yaml:7:3", Parameter: &expr.Parameter{Fits: fits}}})
	if len(faults) > 0 {
		t.Fatal(faults[0].Err)
	}
	within, err := c.WithLets(known)
	if err != nil {
		t.Fatal(err)
	}
	_, err = value(t, within, "n > 1").Eval(expr.Scope{Subject: subject()})
	if want := "parameter n (at op.yaml:7:3): must be less than 3"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q in it", err, want)
	}
	if seen != int64(3) {
		t.Errorf("the value is %v", seen)
	}
}
