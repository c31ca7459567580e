// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
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
		r.Children, r.Related, r.Made = c, related{c}, []dsl.NamedChild{{Name: "db"}}
		if _, err := p.Eval(expr.Scope{Subject: r}); err != nil || c.asked != want {
			t.Errorf("%s: asked %d times, want %d; %v", text, c.asked, want, err)
		}
	}
}
