// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr_test

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// family are children that are there.
type family struct {
	dsl.ChildReader
	all []dsl.ChildObject
}

func (f family) All() ([]dsl.ChildObject, error) { return f.all, nil }

// TestWhatIsMissingIsNamedWithTheWholeWay holds what an evaluation says that comes upon nothing.
func TestWhatIsMissingIsNamedWithTheWholeWay(t *testing.T) {
	service := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"namespace": "shop", "name": "web"}, "status": map[string]any{"loadBalancer": map[string]any{}},
	}}
	subject := &dsl.Subject{
		Object:   &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"name": "a", "users": []any{map[string]any{}}, "tls": map[string]any{}}}},
		Children: family{all: []dsl.ChildObject{{ChildSpec: dsl.ChildSpec{Name: "web"}, Object: service}}},
		Made:     []shape.NamedChild{{Name: "web"}, {Name: "db"}},
	}
	tests := map[string]struct{ text, want string }{
		"a field":                                    {"self.spec.host", "self.spec.host is not set"},
		"a field of what is not there either":        {"self.status.url.host", "self.status is not set"},
		"a field of one that is there":               {"self.spec.tls.secret", "self.spec.tls.secret is not set"},
		"a key":                                      {"self.spec['a-b']", "self.spec['a-b'] is not set"},
		"one of several":                             {"self.spec.name + self.spec.port", "self.spec.port is not set"},
		"before an optional one":                     {"self.status.?url.orValue('x')", "self.status is not set"},
		"before one that is asked for":               {"has(self.status.url)", "self.status is not set"},
		"in a branch, when the other is not there":   {"has(self.spec.x) ? self.spec.x : self.spec.y", "self.spec.y is not set"},
		"within a macro":                             {"[1].map(x, self.spec.z)", "self.spec.z is not set"},
		"a field of an element, whose way is no one": {"self.spec.users.map(u, u.name)", "no such key: name"},
		"a parameter":                                {"params.size", "params.size is not set"},
		"another variable":                           {"item.name", "item.name is not set"},
		"a field of a child":                         {"children.web.status.loadBalancer.ingress[0].ip", "children.web (Service shop/web): status.loadBalancer.ingress is not set"},
		"a child":                                    {"children.db.status.ready", "children.db is not there"},
		"a list that is too short":                   {"self.spec.users[3]", "index out of bounds: 3"},
	}
	compiler, err := expr.New()
	if err != nil {
		t.Fatal(err)
	}
	if compiler, err = compiler.With("item"); err != nil {
		t.Fatal(err)
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			program, err := compiler.Value(test.text)
			if err != nil {
				t.Fatal(err)
			}
			_, err = program.Eval(expr.Scope{Subject: subject, Vars: map[string]any{"item": map[string]any{}}})
			if !errors.Is(err, expr.ErrMissing) || err.Error() != test.want {
				t.Errorf("%s: %v, want %s", test.text, err, test.want)
			}
		})
	}
}
