// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/expr/check"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// seeds are expressions that are right, and some that are not.
func seeds() []string {
	return []string{
		"self.spec.replicas + 1", "self.spec.replcias", "self.?spec.?x.orValue(0)", "has(self.spec.name)", "self['spec'][?'a-b']",
		"self.spec.list.all(i, x, x.size > i)", "self.spec.list.map(x, x.name).join(',')", "self.spec.`a-b`.size()",
		"children.pods.all(p, ready(p))", "children.deploymnt.spec", "related.x", "hash({'a': self.spec})", "unbase64(base64('x'))",
		"'%s-%d'.format(['a', 1])", "quantity('1Gi').add(quantity('1'))", "timestamp('2030-01-01T00:00:00Z') + duration('1h')",
		"[1, 2].sortBy(x, -x)", "{'a': 1}.transformMap(k, v, v + 1)", "self.?spec.optMap(s, s.?name)", "optional.of(1).or(optional.none())",
		"lists.range(10).map(x, x * x).sum()", "cidr('10.0.0.0/8').containsIP('10.1.1.1')", "semver('1.2.3').major()", "'a'.matches('a+')",
		"self.a = 1", "a and b", "not x", "'abc", "(1", "[1,", "{", "null.x", "1 & 2", "x ?. y", "r'\\' + b'x'", "'''a\nb'''", "// x", "1 // }\n + 1", "0.all(.,(0))",
		"1.0 / 0.0", "-9223372036854775808 - 1", "{1: 2}", "type(1)", "now", "diff", "b'\\xff'", "self.spec.list[9]", "self['spec'][b'0']", "'ä€𝄞' + 1",
	}
}

// within reports whether a place lies within a text or right behind it.
func within(text string, line, column int) bool {
	lines := strings.Split(text, "\n")
	return line >= 1 && column >= 1 && line <= len(lines) && column <= utf8.RuneCountInString(lines[line-1])+1
}

// FuzzExpression holds that whatever is written, compiling, checking and evaluating it come to an
// end; that faults lie within the text; and that a result can be written as JSON.
func FuzzExpression(f *testing.F) {
	for _, seed := range seeds() {
		f.Add(seed)
	}
	c, s, r := compiler(f), schemas(f), subject()
	f.Fuzz(func(t *testing.T, text string) {
		start := time.Now()
		p, err := c.Value(text)
		if err != nil {
			faulty, ok := errors.AsType[*expr.Error](err)
			if !ok {
				t.Fatalf("compiling %q: %v is no expr.Error", text, err)
			}
			allWithin(t, text, faulty)
			return
		}
		for _, schemas := range []shape.Schemas{s, {}} {
			if faulty, ok := errors.AsType[*expr.Error](check.Program(p, schemas)); ok {
				allWithin(t, text, faulty)
			}
		}
		value, err := p.Eval(expr.Scope{Subject: r, Params: dsl.Params{"a": "b"}})
		if err == nil && value != expr.None {
			if _, err := json.Marshal(value); err != nil {
				t.Errorf("the value of %q: %v", text, err)
			}
		}
		if took := time.Since(start); took > time.Minute { // which a busy machine does not explain
			t.Errorf("%q took %v", text, took)
		}
	})
}

func allWithin(t *testing.T, text string, faulty *expr.Error) {
	t.Helper()
	if len(faulty.Issues)+len(faulty.Doubts) == 0 {
		t.Errorf("the error of %q says nothing", text)
	}
	for _, issue := range slices.Concat(faulty.Issues, faulty.Doubts) {
		if utf8.ValidString(text) && !within(text, issue.Line, issue.Column) {
			t.Errorf("%q: %d:%d lies outside: %s", text, issue.Line, issue.Column, issue.Message)
		}
		if issue.Message == "" || strings.Contains(issue.Message, "\n") {
			t.Errorf("%q: the message is %q", text, issue.Message)
		}
	}
}

// FuzzTemplate holds the same for texts of templates, and that a text without expressions is
// rendered as it is.
func FuzzTemplate(f *testing.F) {
	for _, seed := range seeds() {
		f.Add("${" + seed + "}")
		f.Add("a $${" + seed + "} ${" + seed + "}\n ${ " + seed + "\n}")
	}
	for _, seed := range []string{"", "$", "$$", "${", "$${", "$$${", "${}", "a}", "${'}", "${\"", "${'''", "$$${'a'}", "${{}}", "${//}", "ä${", "\xff${x}"} {
		f.Add(seed)
	}
	c, s, r, target := compiler(f), schemas(f), subject(), kubernetes(f, "io.k8s.api.core.v1.Service")
	f.Fuzz(func(t *testing.T, text string) {
		trees := []any{text, map[string]any{"spec": map[string]any{"ports": []any{text}, "type": text}, text: text}}
		for _, tree := range trees {
			tmpl, err := c.Template(tree, "at")
			if err != nil {
				placedWithin(t, text, err)
				continue
			}
			placedWithin(t, text, errors.Join(check.Template(tmpl, s, target)...))
			value, err := tmpl.Render(expr.Scope{Subject: r})
			if err != nil || value == expr.None {
				continue
			}
			if _, err := json.Marshal(value); err != nil {
				t.Errorf("the value of %q: %v", text, err)
			}
		}
		if plain := strings.ReplaceAll(text, "$${", ""); !strings.Contains(plain, "${") {
			rendersAs(t, c, text, strings.ReplaceAll(text, "$${", "${"))
		}
	})
}

func placedWithin(t *testing.T, text string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	for _, err := range err.(interface{ Unwrap() []error }).Unwrap() {
		fault, ok := errors.AsType[*shape.Misfit](err)
		if !ok {
			t.Fatalf("%q: %v is no shape.Misfit", text, err)
		}
		if len(fault.Path) == 0 || fault.Path[0] != "at" {
			t.Errorf("%q: the path is %v", text, fault.Path)
		}
		if fault.Line != 0 && utf8.ValidString(text) && !within(text, fault.Line, fault.Column) {
			t.Errorf("%q: %d:%d lies outside: %s", text, fault.Line, fault.Column, fault.Message)
		}
	}
}

func rendersAs(t *testing.T, c *expr.Compiler, text, want string) {
	t.Helper()
	tmpl, err := c.Template(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	if got, err := tmpl.Render(expr.Scope{}); err != nil || got != want {
		t.Errorf("%q is rendered as %q, %v, want %q", text, got, err, want)
	}
}
