// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChildrenAreTheNamesThatAnExpressionSelects(t *testing.T) {
	tests := map[string]struct {
		text  string
		names []string
		whole bool
	}{
		"none at all":                         {"self.children.db", nil, false},
		"a field":                             {"children.db.status.ready", []string{"db"}, false},
		"a field that is asked for":           {"has(children.db)", []string{"db"}, false},
		"an optional field":                   {"children.?db.?status.orValue(1)", []string{"db"}, false},
		"a key":                               {"children['db'].spec", []string{"db"}, false},
		"an optional key":                     {"children[?'db'].orValue({})", []string{"db"}, false},
		"several, sorted and once":            {"children.web.a + children.db.b + children.web.c", []string{"db", "web"}, false},
		"in calls, lists and maps":            {"[[children.a]].size() + {children.c.name: children.b}.size() + size(children.d)", []string{"a", "b", "c", "d"}, false},
		"what a macro goes over":              {"children.pods.map(p, p.metadata.name + children.db.name)", []string{"db", "pods"}, false},
		"a macro's own variable of that name": {"self.list.map(children, children.db)", nil, false},
		"before a macro hides the name":       {"children.a.map(children, children.db)", []string{"a"}, false},
		"all of them":                         {"children.map(name, children[name])", nil, true},
		"a key that is worked out":            {"children[self.spec.which]", nil, true},
		"one and all":                         {"size(children) + children.db.size", []string{"db"}, true},
		"a method's object":                   {"children.db.name.startsWith(children.web.name)", []string{"db", "web"}, false},
	}
	c := compiler(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := c.Value(test.text)
			if err != nil {
				t.Fatal(err)
			}
			names, whole := p.Children()
			if diff := cmp.Diff(test.names, names); diff != "" || whole != test.whole {
				t.Errorf("%s: whole %v, names (-want +got):\n%s", test.text, whole, diff)
			}
		})
	}
}
