// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// counted are children and related objects that count how often they are asked for.
type counted struct {
	dsl.ChildReader
	asked int
}

func (c *counted) All() ([]dsl.ChildObject, error) {
	c.asked++
	db := map[string]any{"metadata": map[string]any{"name": "db"}}
	return []dsl.ChildObject{{ChildSpec: dsl.ChildSpec{Name: "db"}, Object: &unstructured.Unstructured{Object: db}}}, nil
}

// related are related objects that count along.
type related struct{ *counted }

func (r related) Get(string) ([]*unstructured.Unstructured, error) {
	r.asked++
	return nil, nil
}

func (related) Absent(string) string { return "" }

func (related) Relations() []dsl.Relation { return []dsl.Relation{{Name: "them"}} }

func TestChildrenAreReadOnceForAnEvaluation(t *testing.T) {
	for text, want := range map[string]int{
		"size(self.spec.ports)": 0,
		"[1, 2, 3].map(i, children.db.metadata.name + string(i))[2]":                                1,
		"[1, 2, 3].all(i, size(related.them) < i) && size(related.them) == 0":                       1,
		"children.db.metadata.name == 'db' && has(children.db.metadata) && size(related.them) == 0": 2,
	} {
		p, err := compiler(t).Value(text)
		if err != nil {
			t.Fatal(err)
		}
		r, c := subject(), &counted{}
		r.Children, r.Related, r.Made = c, related{c}, []shape.NamedChild{{Name: "db"}}
		if _, err := p.Eval(expr.Scope{Subject: r}); err != nil || c.asked != want {
			t.Errorf("%s: asked %d times, want %d; %v", text, c.asked, want, err)
		}
	}
}

func TestForeignValuesOfVariablesAreMadePlain(t *testing.T) {
	c, err := compiler(t).With("v")
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Value("v")
	if err != nil {
		t.Fatal(err)
	}
	v := map[string]any{
		"int": 1, "time": time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), "words": []string{"a"}, "map": map[string]string{"a": "b"}, "float": 1.5,
	}
	want := map[string]any{
		"int": int64(1), "time": "2030-01-02T03:04:05Z", "words": []any{"a"}, "map": map[string]any{"a": "b"}, "float": 1.5,
	}
	got, err := p.Eval(expr.Scope{Subject: &dsl.Subject{}, Vars: map[string]any{"v": v}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("value (-want +got):\n%s", diff)
	}
}
