// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// TestExpressionsOfAPartReadItsOwnChildren has a child that the part calls web, and another child of this name around it.
func TestExpressionsOfAPartReadItsOwnChildren(t *testing.T) {
	c := compiler(t)
	around, faults := lets(t, c, nil, "outer = children.web.metadata.name")
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	known, faults := c.Parameters(around, []expr.Let{{Name: "given", Text: "outer + children.web.metadata.name", Parameter: &expr.Parameter{}}})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	known, faults = lets(t, c, known.WithChildren(map[string]string{"web": "front_web", "api": "front_api"}), "own = children.web.metadata.name")
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	c, err := c.WithLets(known)
	if err != nil {
		t.Fatal(err)
	}
	s := subject()
	var all []dsl.ChildObject
	for _, name := range []string{"web", "front_web", "front_api", "db"} {
		object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "the-" + name}}}
		all, s.Made = append(all, dsl.ChildObject{ChildSpec: dsl.ChildSpec{Name: name}, Object: object}), append(s.Made, shape.NamedChild{Name: name})
	}
	s.Children = &counting{all: all}
	for text, want := range map[string]struct {
		value    any
		children []string
	}{
		"children.web.metadata.name":                                        {"the-front_web", []string{"front_web"}},
		".children.web.metadata.name":                                       {"the-front_web", []string{"front_web"}},
		"children['web'].metadata.name":                                     {"the-front_web", []string{"front_web"}},
		"children.?web.?metadata.name.orValue('')":                          {"the-front_web", []string{"front_web"}},
		"children[?'web'].metadata.name.orValue('')":                        {"the-front_web", []string{"front_web"}},
		"has(children.web) && has(children.web.metadata)":                   {true, []string{"front_web"}},
		"children\n  .web.metadata.name + children.db.metadata.name":        {"the-front_webthe-db", []string{"db", "front_web"}},
		"own + '/' + given":                                                 {"the-front_web/the-webthe-web", []string{"front_web", "web"}},
		"['x'].map(n, n + children.web.metadata.name)[0] + 'children.web'":  {"xthe-front_webchildren.web", []string{"front_web"}},
		"children // .\n .web.metadata.name":                                {"the-front_web", []string{"front_web"}},
		"[{'web': 'bound'}].map(children, children.web)[0]":                 {"bound", nil},
		"['children.web'].filter(w, children.web.metadata.name != w)[0]":    {"children.web", []string{"front_web"}},
		"children.web.metadata.name == 'the-front_web' ? own : 'children.'": {"the-front_web", []string{"front_web"}},
	} {
		p := value(t, c, text)
		got, err := p.Eval(expr.Scope{Subject: s})
		names, whole := p.Children()
		if diff := cmp.Diff(want.value, got); diff != "" || err != nil || whole {
			t.Errorf("%s: %v, %v (-want +got):\n%s", text, err, whole, diff)
		}
		if diff := cmp.Diff(want.children, names); diff != "" {
			t.Errorf("%s reads children (-want +got):\n%s", text, diff)
		}
	}
	for text, want := range map[string]bool{"'db' in children": true, "'own' in children": false, "'api' in children": true, "['x'].exists(n, 'web' in children && n in ['x'])": true} {
		if got, err := value(t, c, text).Eval(expr.Scope{Subject: s}); got != want || err != nil {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	p, err := c.Predicate("children.web.metadata.name == 'x' || own == 'x'")
	if err != nil {
		t.Fatal(err)
	}
	want := `false; children.front_web.metadata.name == "x" = false; children.front_web.metadata.name = "the-front_web"; own == "x" = false; own = "the-front_web"`
	if got := told(p.Explain(expr.Scope{Subject: s}, false)); got != want {
		t.Errorf("explained as %s, want %s", got, want)
	}
}
