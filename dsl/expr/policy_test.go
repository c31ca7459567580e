// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExpressionsOfAdmissionPolicies(t *testing.T) {
	base, err := New()
	if err != nil {
		t.Fatal(err)
	}
	with, err := base.With(Request)
	if err != nil {
		t.Fatal(err)
	}
	lets, faults := with.Lets(nil, []Let{{Name: "size", Text: "self.spec.size"}})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	c, err := with.WithLets(lets)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, text, want, fault string }{
		{"self and old get their names", "self.spec.size >= old.spec.size", "object.spec.size >= oldObject.spec.size", ""},
		{"texts and comments stay", "self.a == 'self' // self\n", "object.a == 'self' // self\n", ""},
		{"fields of the same name stay", "self.self == old.old", "object.self == oldObject.old", ""},
		{"macros keep their variables", "self.list.all(self, self > 0) && has(self.x)", "object.list.all(self, self > 0) && has(object.x)", ""},
		{"characters of several bytes move nothing", "'äöü' == self.x || self.y", "'äöü' == object.x || object.y", ""},
		{"the request and parameters stay", "request.operation == 'CREATE' && params.data.x == self.x", "request.operation == 'CREATE' && params.data.x == object.x", ""},
		{"lets are written out", "size > 3", "(object.spec.size\n) > 3", ""},
		{"children are unknown to the API server", "size(children) > 0", "", "it reads children"},
		{"own functions are unknown to the API server", "hash(self) == ''", "", "the API server cannot evaluate it: undeclared reference to 'hash'"},
		{"a request has no other fields", "request.color == 'red'", "", "the API server cannot evaluate it: undefined field 'color'"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := c.Value(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Policy(PolicyVariables())
			fault := ""
			if err != nil {
				got, fault = "", err.Error()
			}
			if diff := cmp.Diff([]string{tc.want, tc.fault}, []string{got, fault}); diff != "" {
				t.Errorf("policy has (-want +got):\n%s", diff)
			}
		})
	}
}

// rules returns the compiler of rules about requests.
func rules(t *testing.T) *Compiler {
	t.Helper()
	base, err := New()
	if err != nil {
		t.Fatal(err)
	}
	c, err := base.With(Request)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPredicatesHaveTheTypeThatTheAPIServerWants(t *testing.T) {
	c := rules(t)
	for _, tc := range []struct{ name, text, want string }{
		{"a comparison is true or false", "self.x > 1", "object.x > 1"},
		{"a field need not be true or false", "self.x", "(object.x) ? true : false"},
		{"a comment ends before what follows it", "self.x // why", "(object.x // why\n) ? true : false"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := c.Value(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.PolicyPredicate(PolicyVariables())
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("policy has (-want +got):\n%s, %v", diff, err)
			}
		})
	}
}

func TestMessagesHaveTheTypeThatTheAPIServerWants(t *testing.T) {
	c := rules(t)
	for _, tc := range []struct{ name, text, want string }{
		{"a text of pieces is a text", "${self.x} is old", `string(object.x) + " is old"`},
		{"a field need not be a text", "${self.x}", "string((object.x))"},
		{"a text that the API server knows to be one stays", "${request.userInfo.username}", "(request.userInfo.username)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			template, err := c.Template(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			got, err := template.PolicyMessage(PolicyVariables())
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("policy has (-want +got):\n%s, %v", diff, err)
			}
		})
	}
}

func TestChangesOfAdmissionPolicies(t *testing.T) {
	c, err := New()
	if err != nil {
		t.Fatal(err)
	}
	const (
		spec   = `("spec" in object && type(object["spec"]) == map ? [] : [{"op": dyn("add"), "path": dyn("/spec"), "value": dyn({})}])`
		labels = `("labels" in object["metadata"] && type(object["metadata"]["labels"]) == map ? [] : [{"op": dyn("add"), "path": dyn("/metadata/labels"), "value": dyn({})}])`
	)
	type entry struct {
		path  []string
		value any
		when  string
	}
	for _, tc := range []struct {
		name    string
		entries []entry
		want    string
	}{
		{"a field of the spec", []entry{{[]string{"spec", "size"}, int64(3), ""}},
			`changes: ` + spec + ` +
[{"op": dyn("add"), "path": dyn("/spec/size"), "value": dyn(3)}]`},
		{"two fields make their parent once", []entry{{[]string{"spec", "a"}, true, "has(object.x)"}, {[]string{"spec", "b"}, 2.0, "has(object.y)"}},
			`when_spec_a: has(object.x)
when_spec_b: has(object.y)
changes: ((variables.when_spec_a) || (variables.when_spec_b) ? ` + spec + ` : []) +
(variables.when_spec_a ? [{"op": dyn("add"), "path": dyn("/spec/a"), "value": dyn(true)}] : []) +
(variables.when_spec_b ? [{"op": dyn("add"), "path": dyn("/spec/b"), "value": dyn(2.0)}] : [])`},
		{"two fields with one condition share its variable", []entry{{[]string{"spec"}, true, "has(object.x)"}, {[]string{"other"}, true, "has(object.x)"}},
			`when_spec: has(object.x)
changes: (variables.when_spec ? [{"op": dyn("add"), "path": dyn("/spec"), "value": dyn(true)}] : []) +
(variables.when_spec ? [{"op": dyn("add"), "path": dyn("/other"), "value": dyn(true)}] : [])`},
		{"two fields whose names look alike have two variables", []entry{{[]string{"spec-a"}, "${size(self.x)}", ""}, {[]string{"spec.a"}, "${size(self.y)}", ""}},
			`spec_a: (size(object.x))
spec_a_2: (size(object.y))
changes: [{"op": dyn("add"), "path": dyn("/spec-a"), "value": dyn(variables.spec_a)}] +
[{"op": dyn("add"), "path": dyn("/spec.a"), "value": dyn(variables.spec_a_2)}]`},
		{"a key is escaped", []entry{{[]string{"metadata", "labels", "a.io/b"}, "${self.metadata.name}-x", ""}},
			`labels_a_io_b: string(object.metadata.name) + "-x"
changes: ` + labels + ` +
[{"op": dyn("add"), "path": dyn("/metadata/labels/a.io~1b"), "value": dyn(variables.labels_a_io_b)}]`},
		{"null removes", []entry{{[]string{"spec", "size"}, nil, ""}},
			`changes: ("spec" in object && type(object["spec"]) == map && "size" in object["spec"] ? [{"op": dyn("remove"), "path": dyn("/spec/size"), "value": dyn(null)}] : [])`},
		{"a value that turns out to be null removes", []entry{{[]string{"spec"}, "${self.x}", ""}},
			`spec: (object.x)
changes: (dyn(variables.spec) == null ? ("spec" in object ? [{"op": dyn("remove"), "path": dyn("/spec"), "value": dyn(null)}] : []) : [{"op": dyn("add"), "path": dyn("/spec"), "value": dyn(variables.spec)}])`},
		{"labels are texts", []entry{{[]string{"metadata", "labels", "a"}, "${size(self.x)}", ""}},
			`labels_a: (size(object.x))
changes: ` + labels + ` +
[{"op": dyn("add"), "path": dyn("/metadata/labels/a"), "value": dyn(string(variables.labels_a))}]`},
		{"lists and maps have values of any type", []entry{{[]string{"spec"}, []any{int64(1), "${self.x}", map[string]any{"a": true}}, ""}},
			`spec: [dyn(1), dyn((object.x)), dyn({"a": dyn(true)})]
changes: [{"op": dyn("add"), "path": dyn("/spec"), "value": dyn(variables.spec)}]`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var entries []PolicyEntry
			for _, e := range tc.entries {
				template, err := c.Template(e.value)
				if err != nil {
					t.Fatal(err)
				}
				entries = append(entries, PolicyEntry{Path: e.path, Value: template, Text: e.path[0] == "metadata", When: e.when})
			}
			variables, patch, err := PolicyChanges(entries, PolicyVariables())
			if err != nil {
				t.Fatal(err)
			}
			if patch != patchOfChanges {
				t.Errorf("the patch is %s", patch)
			}
			got := ""
			for _, v := range variables {
				got += v.Name + ": " + v.Expression + "\n"
			}
			if diff := cmp.Diff(tc.want, strings.TrimSpace(got)); diff != "" {
				t.Errorf("policy has (-want +got):\n%s", diff)
			}
		})
	}
}
