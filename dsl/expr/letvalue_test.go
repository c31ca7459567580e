// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

func TestALetIsWorkedOutOnceForEvaluationsThatShareIt(t *testing.T) {
	c, _ := withLets(t, []string{"web = children.web.metadata.name", "both = web + web"})
	tree, err := c.Template(map[string]any{"a": "${web}", "b": "${both}-${web}", "c": "${[1, 2, 3].map(i, web)}"})
	if err != nil {
		t.Fatal(err)
	}
	web := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "w"}}}
	children := &counting{all: []dsl.ChildObject{{ChildSpec: dsl.ChildSpec{Name: "web"}, Object: web}}}
	s := subject()
	s.Children, s.Made = children, []shape.NamedChild{{Name: "web"}}
	scope := expr.Scope{Subject: s}
	got, err := tree.Render(scope)
	want := map[string]any{"a": "w", "b": "ww-w", "c": []any{"w", "w", "w"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || children.asked != 1 {
		t.Errorf("%v, children were read %d times, want once (-want +got):\n%s", err, children.asked, diff)
	}
	web.SetName("v") // as another pass sees it
	if got, err := value(t, c, "web").Eval(scope); got != "v" || err != nil {
		t.Errorf("the next evaluation has %v, %v, want what is there now", got, err)
	}
	scope.Lets = &expr.LetValues{}
	for range 3 {
		if _, err := value(t, c, "both").Eval(scope); err != nil {
			t.Fatal(err)
		}
	}
	if children.asked != 3 {
		t.Errorf("evaluations that share values have read children %d times, want once", children.asked-2)
	}
}

// counting are children that count how often they are asked for.
type counting struct {
	dsl.ChildReader
	all   []dsl.ChildObject
	asked int
}

func (c *counting) All() ([]dsl.ChildObject, error) {
	c.asked++
	return c.all, nil
}

func TestALetThatFailsIsTheFailureOfItsUser(t *testing.T) {
	c, _ := withLets(t, []string{
		"gone = self.spec.missing.field", "outer = gone + 1", "bad = int(self.spec.flag)", "spec = self.spec", "item_count = self.spec.ports.map(p, self.spec.ports)",
	})
	for text, want := range map[string]string{
		"gone == 1":         "let gone (at op.yaml:1:1): self.spec.missing is not set",
		"outer":             "let outer (at op.yaml:2:1): let gone (at op.yaml:1:1): self.spec.missing is not set",
		"has(gone.x)":       "let gone (at op.yaml:1:1): self.spec.missing is not set",
		"bad > 1":           "let bad (at op.yaml:3:1): ",
		"spec.missing.more": "spec.missing is not set",
	} {
		_, err := value(t, c, text).Eval(expr.Scope{Subject: subject()})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
		if missing := !strings.HasPrefix(text, "bad"); errors.Is(err, expr.ErrMissing) != missing {
			t.Errorf("%s: something is missing: %v, want %v", text, !missing, missing)
		}
	}
}

func TestTheErrorOfALetThatReadsASecretHasNoValue(t *testing.T) {
	c, _ := withLets(t, []string{"password = self.spec.flag", "number = int(password)"})
	s := subject()
	s.Secrets = dsl.Secrets{Read: true, From: []string{"self"}}
	_, err := value(t, c, "number + 1").Eval(expr.Scope{Subject: s})
	if err == nil || strings.Contains(err.Error(), "yes") || !strings.Contains(err.Error(), "let number (at op.yaml:2:1): ") {
		t.Errorf("error %v, want one that names the let alone", err)
	}
	p, err := c.Predicate("password == 'no'")
	if err != nil {
		t.Fatal(err)
	}
	if got := told(p.Explain(expr.Scope{Subject: s}, false)); strings.Contains(got, "yes") || !strings.Contains(got, "password = "+dsl.Secret) {
		t.Errorf("explained: %s", got)
	}
}

// TestLetsShareTheCostOfTheirUser holds that lets are no way around the limit of one evaluation.
func TestLetsShareTheCostOfTheirUser(t *testing.T) {
	s := subject()
	s.Object.Object["text"] = strings.Repeat("x", 2<<20)
	alone, err := value(t, compiler(t), "self.text.contains('y')").Try(expr.Scope{Subject: s})
	if err != nil {
		t.Fatal(err)
	}
	var named, any []string
	for i := range int(expr.MostCost/alone.Cost) + 1 {
		named, any = append(named, fmt.Sprintf("l%d = self.text.contains('y%d')", i, i)), append(any, fmt.Sprintf("l%d", i))
	}
	c, _ := withLets(t, named)
	scope := expr.Scope{Subject: s, Lets: &expr.LetValues{}}
	for range 2 { // values that are known already count, too
		_, err = value(t, c, strings.Join(any, " || ")).Eval(scope)
		if err == nil || !strings.Contains(err.Error(), "it costs more than one evaluation may") {
			t.Fatalf("%d lets of cost %d: %v", len(any), alone.Cost, err)
		}
	}
	if _, err := value(t, c, "l0 || l0").Eval(scope); err != nil {
		t.Errorf("one of them: %v", err)
	}
}

func TestWhatIsNotReadyIsHeardThroughLets(t *testing.T) {
	c, _ := withLets(t, []string{"up = ready(children.web)", "good = up"})
	s := explained()
	scope := expr.Scope{Subject: s, Lets: &expr.LetValues{}}
	for range 2 {
		var heard []string
		scope.Unready = func(why dsl.Readiness) { heard = append(heard, why.Reason) }
		if _, err := value(t, c, "good && up").Eval(scope); err != nil || len(heard) == 0 {
			t.Errorf("heard %v, %v", heard, err)
		}
	}
}

func TestAnExplanationHasTheLetsThatDecided(t *testing.T) {
	c, _ := withLets(t, []string{
		"wanted = self.spec.size > 3 && self.spec.on", "size = self.spec.size", "up = ready(children.web)", "spec = self.spec", "gone = self.spec.none.x",
		"all_wanted = wanted && up",
	})
	for text, want := range map[string]string{
		"wanted":          "false; wanted = false; self.spec.size > 3 = false; self.spec.size = 2",
		"!wanted":         "true; wanted = false; self.spec.size > 3 = false; self.spec.size = 2",
		"size > 3":        "false; size = 2",
		"up":              "false; up = false; ready(children.web) = false (Deployment shop/web: 1 of 3 available)",
		"spec.size > 3":   "false; spec.size = 2",
		"has(spec.other)": "false; spec.other = " + dsl.NotSet,
		"all_wanted":      "false; all_wanted = false; wanted = false; self.spec.size > 3 = false; self.spec.size = 2",
		"gone == 1":       "error: let gone (at op.yaml:5:1): self.spec.none is not set; self.spec.none = " + dsl.NotSet,
	} {
		p, err := c.Predicate(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, told(p.Explain(expr.Scope{Subject: explained()}, false))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestALetCountsAsUsedByAnExpression(t *testing.T) {
	c, known := withLets(t, []string{"used = inner", "inner = 1", "unused = other", "other = 2"})
	value(t, c, "used + 1")
	for name, want := range map[string]bool{"used": true, "inner": true, "unused": false, "other": false} {
		if known.Used(name) != want {
			t.Errorf("%s is used: %v", name, !want)
		}
	}
}

func TestConditionsInLetsAreObserved(t *testing.T) {
	c, _ := withLets(t, []string{"image = self.spec.paused ? 'a' : 'b'", "unused = self.spec.ratio > 1 ? 1 : 2"})
	got := map[string][]bool{}
	observed := c.Observed(func(what, condition string) func(bool) {
		got[condition] = append(got[condition], []bool{}...)
		return func(holds bool) { got[condition] = append(got[condition], holds) }
	})
	if v, err := value(t, observed, "image + '-x'").Eval(expr.Scope{Subject: subject()}); v != "b-x" || err != nil {
		t.Errorf("%v, %v", v, err)
	}
	if diff := cmp.Diff(map[string][]bool{"self.spec.paused": {false}}, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

func TestTheWrittenTextOfATemplateHasNoLets(t *testing.T) {
	c, _ := withLets(t, []string{"name = self.metadata.name"})
	for text, want := range map[string]string{
		"x-${name}":               "x-${(self.metadata.name\n)}",
		"x-${self.metadata.name}": "x-${self.metadata.name}",
		"x":                       "x",
	} {
		template, err := c.Template(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := template.Written(); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
