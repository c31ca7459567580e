// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// explained is the object of the tests of explanations, with children and an index.
func explained() *dsl.Subject {
	many := make([]any, 5000)
	for i := range many {
		many[i] = map[string]any{"id": int64(i), "text": strings.Repeat("x", 50)}
	}
	deployment := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "shop", "name": "web", "generation": int64(1)},
		"spec":   map[string]any{"replicas": int64(3)},
		"status": map[string]any{"observedGeneration": int64(1), "replicas": int64(3), "updatedReplicas": int64(3), "readyReplicas": int64(1), "availableReplicas": int64(1)},
	}}
	return &dsl.Subject{
		Object: &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "a", "labels": map[string]any{"app.kubernetes.io/name": "shop"}},
			"spec": map[string]any{
				"size": int64(2), "on": true, "off": false, "name": "Größe \u202e„x“\n", "many": many, "text": strings.Repeat("ä", 1<<20),
				"ports": []any{
					map[string]any{"name": "http", "port": int64(80)}, map[string]any{"name": "dns", "port": int64(53)}, map[string]any{"name": "ssh", "port": int64(22)},
				},
				"quota": map[string]any{"cpu": "2", "memory": "1Gi"}, "nothing": nil, "key": "cpu", "names": []any{"a", "b"},
			},
		}},
		Children: family{all: []dsl.ChildObject{{ChildSpec: dsl.ChildSpec{Name: "web"}, Object: deployment}}},
		Made:     []shape.NamedChild{{Name: "web"}, {Name: "db"}},
		Indexes:  &fakeIndexes{},
	}
}

// told writes a clause in one line: its answer or error, and its values.
func told(c dsl.Clause) string {
	out := fmt.Sprint(c.Holds)
	if c.Error != "" {
		out = "error: " + c.Error
	}
	for _, v := range c.Values {
		out += "; " + v.Text + " = " + v.Value
	}
	return out
}

func explain(t *testing.T, text string, scope expr.Scope, variables ...string) dsl.Clause {
	t.Helper()
	with, err := compiler(t).With(variables...)
	if err != nil {
		t.Fatal(err)
	}
	program, err := with.Predicate(text)
	if err != nil {
		t.Fatal(err)
	}
	got := program.Explain(scope, false)
	holds, err := program.Bool(scope)
	if err != nil && got.Error != err.Error() || holds != got.Holds {
		t.Errorf("explained: %v %q, evaluated: %v %v", got.Holds, got.Error, holds, err)
	}
	return got
}

// TestAnExplanationHasThePartsThatDecided holds what an explanation says of each kind of part.
func TestAnExplanationHasThePartsThatDecided(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"a comparison":                           {"self.spec.size > 3", "false; self.spec.size = 2"},
		"a comparison that holds":                {"self.spec.size < 3", "true; self.spec.size = 2"},
		"two fields":                             {"self.spec.size == size(self.spec.ports)", "false; self.spec.size = 2; size(self.spec.ports) = 3"},
		"a field that is true or false":          {"self.spec.off", "false; self.spec.off = false"},
		"a constant":                             {"1 > 2", "false"},
		"the part of && that is false":           {"self.spec.on && self.spec.size > 3 && self.spec.off", "false; self.spec.size > 3 = false; self.spec.size = 2"},
		"all parts of && that holds":             {"self.spec.on && self.spec.size < 3", "true; self.spec.on = true; self.spec.size = 2"},
		"the part of || that is true":            {"self.spec.off || self.spec.size < 3 || self.spec.on", "true; self.spec.size = 2"},
		"all parts of || that is false":          {"self.spec.off || self.spec.size > 3", "false; self.spec.off = false; self.spec.size > 3 = false; self.spec.size = 2"},
		"&& within ||":                           {"self.spec.off || self.spec.on && self.spec.size > 3", "false; self.spec.off = false; self.spec.size > 3 = false; self.spec.size = 2"},
		"a negation":                             {"!self.spec.on", "false; self.spec.on = true"},
		"a negation of a part":                   {"!(self.spec.on && self.spec.size < 3)", "false; self.spec.on = true; self.spec.size < 3 = true; self.spec.size = 2"},
		"in a list":                              {"self.spec.key in ['a', 'b']", `false; self.spec.key = "cpu"`},
		"in a map":                               {"'disk' in self.spec.quota", `false; self.spec.quota = {cpu: "2", memory: "1Gi"}`},
		"a function":                             {"self.spec.key.startsWith('x')", `false; self.spec.key = "cpu"`},
		"a function of a function":               {"self.spec.key.upperAscii() == 'cpu'", `false; self.spec.key.upperAscii() = "CPU"`},
		"a key":                                  {"self.metadata.labels['app.kubernetes.io/name'] == 'x'", `false; self.metadata.labels['app.kubernetes.io/name'] = "shop"`},
		"a computed key":                         {"self.spec.quota[self.spec.key] == '1'", `false; self.spec.quota[self.spec.key] = "2"`},
		"an element":                             {"self.spec.ports[1].port == 54", `false; self.spec.ports[1].port = 53`},
		"null":                                   {"self.spec.nothing != null", "false; self.spec.nothing = null"},
		"a field that is there":                  {"!has(self.spec.size)", "false; has(self.spec.size) = true"},
		"a field that is not there":              {"has(self.spec.color)", "false; self.spec.color = not set"},
		"one of a part that is not there":        {"has(self.status.color) && self.spec.on", "error: self.status is not set; self.status = not set"},
		"an optional field":                      {"self.?spec.?size.orValue(0) > 3", "false; self.?spec.?size.orValue(0) = 2"},
		"an optional field that is not there":    {"self.?status.?ready.orValue(false)", "false; self.status = not set"},
		"an optional field that has a default":   {"self.spec.?color.orValue('red') == 'blue'", "false; self.spec.color = not set"},
		"a question for an optional field":       {"self.spec.?color.hasValue()", "false; self.spec.color = not set"},
		"a missing field":                        {"self.spec.color == 'red'", "error: self.spec.color is not set; self.spec.color = not set"},
		"a missing field after one that is true": {"self.spec.on && self.spec.color == 'red'", "error: self.spec.color is not set; self.spec.color = not set"},
		"a missing field that does not matter":   {"self.spec.color == 'red' || self.spec.size == 2", "true; self.spec.size = 2"},
		"a missing field that did not count":     {"self.spec.color == 'red' && self.spec.size == 3", "false; self.spec.size == 3 = false; self.spec.size = 2"},
		"a function that fails":                  {"int(self.spec.key) > 3", `error: type conversion error from 'string' to 'int'; self.spec.key = "cpu"`},
		"kinds that do not go together":          {"self.spec.size > self.spec.key", `error: > does not go with the kinds of its values (string(…), int(…) and double(…) convert them); self.spec.size = 2; self.spec.key = "cpu"`},
		"neither true nor false":                 {"self.spec.size", "error: the result is a whole number, want true or false; self.spec.size = 2"},
		"a choice":                               {"self.spec.on ? self.spec.size > 3 : self.spec.off", "false; self.spec.on = true; self.spec.size > 3 = false; self.spec.size = 2"},
		"a choice of fields":                     {"(self.spec.off ? self.spec.on : self.spec.off)", "false; self.spec.off = false"},
		"the element for which all is false":     {"self.spec.ports.all(p, p.port < 60)", `false; p = {name: "http", port: 80}; p.port < 60 = false; p.port = 80`},
		"the second element":                     {"self.spec.ports.all(p, p.port > 60)", `false; p = {name: "dns", port: 53}; p.port > 60 = false; p.port = 53`},
		"no element":                             {"self.spec.ports.exists(p, p.name == 'x')", `false; self.spec.ports = [{name: "http", port: 80}, {name: "dns", port: 53}, {name: "ssh", port: 22}]`},
		"the element that exists":                {"self.spec.ports.exists(p, p.name == 'dns')", `true; p = {name: "dns", port: 53}; p.name = "dns"`},
		"all of an empty list":                   {"[].all(p, p == 1)", `true; [] = []`},
		"exactly one":                            {"self.spec.names.exists_one(n, n == 'x')", `false; self.spec.names = ["a", "b"]`},
		"a list that a macro makes":              {"self.spec.ports.filter(p, p.port < 60).size() > 2", `false; self.spec.ports.filter(p, p.port < 60).size() = 2`},
		"a loop in a loop":                       {"self.spec.names.all(n, self.spec.ports.exists(p, p.name == n))", `false; n = "a"; self.spec.ports.exists(p, p.name == n) = false; self.spec.ports = [{name: "http", port: 80}, {name: "dns", port: 53}, {name: "ssh", port: 22}]`},
		"a loop over a map":                      {"self.spec.quota.all(k, v, v != '2')", `false; k = "cpu"; v = "2"; v != "2" = false`},
		"an error in a loop":                     {"self.spec.ports.all(p, p.host == 'x')", `error: no such key: host; self.spec.ports = [{name: "http", port: 80}, {name: "dns", port: 53}, {name: "ssh", port: 22}]`},
		"a child that is not there":              {"children.db.status.ready", "error: children.db is not there; children.db = not there"},
		"a child that is not ready":              {"ready(children.web)", "false; ready(children.web) = false (Deployment shop/web: 1 of 3 available)"},
		"a child that is ready if it is there":   {"ready(children.db)", "false; ready(children.db) = false (children.db is not there)"},
		"a part that is not ready":               {"self.spec.on && ready(children.db)", "false; ready(children.db) = false (children.db is not there)"},
		"a key of an index":                      {"size(indexes.them[self.metadata.name]) > 2", "false; size(indexes.them[self.metadata.name]) = 2"},
		"a whole index":                          {"'x' in indexes.them", "false; indexes.them = an index"},
		"an index that cannot be read":           {"'x' in indexes.bad", "error: reading indexes.bad: bars is forbidden"},
		"a variable of the configuration":        {"item == 'x'", `false; item = "y"`},
		"the cause":                              {"cause == 'create'", `false; cause = ""`},
		"letters of any kind":                    {"self.spec.name == 'x'", `false; self.spec.name = "Größe \u202e„x“\n"`},
		"several lines":                          {"self.spec.on &&\n  self.spec.off", "false; self.spec.off = false"},
		"a part that stands there twice":         {"self.spec.size > 3 || self.spec.size > 4", "false; self.spec.size > 3 = false; self.spec.size = 2; self.spec.size > 4 = false"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := explain(t, test.text, expr.Scope{Subject: explained(), Vars: map[string]any{"item": "y"}}, "item")
			if diff := cmp.Diff(test.want, told(got)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", test.text, diff)
			}
		})
	}
}

// TestAnExplanationIsShort holds that no object makes a value of an explanation long, nor the explanation.
func TestAnExplanationIsShort(t *testing.T) {
	tests := map[string]string{
		"a long text":        "self.spec.text == 'x'",
		"a long list":        "self.spec.many == []",
		"all of the object":  "self == {}",
		"a list in a list":   "[self.spec.many, self.spec.many] == []",
		"many parts":         strings.Repeat("self.spec.text == '", 1) + "x'" + strings.Repeat(" || self.spec.text == 'x' || self.spec.many == []", 90),
		"a long part":        "size('" + strings.Repeat("ä", 4000) + "' + self.spec.text) == 1",
		"an element of many": "self.spec.many.exists(m, m.id == 4999 && self.spec.text != m.text)",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			got := explain(t, text, expr.Scope{Subject: explained()})
			if len(got.Values) == 0 || len(got.Values) > 12 {
				t.Errorf("%d values", len(got.Values))
			}
			if size := utf8.RuneCountInString(got.Text); size > 200 {
				t.Errorf("the text has %d characters", size)
			}
			for _, v := range got.Values {
				if utf8.RuneCountInString(v.Value) > 100 || utf8.RuneCountInString(v.Text) > 200 || !utf8.ValidString(v.Value) {
					t.Errorf("too long: %s = %s", v.Text, v.Value)
				}
			}
		})
	}
	got := explain(t, tests["a long list"], expr.Scope{Subject: explained()})
	if !strings.HasSuffix(got.Values[0].Value, "… (5000 items)") {
		t.Errorf("a list that is cut does not say its length: %s", got.Values[0].Value)
	}
}

// TestAnExplanationShowsNoSecret holds that no value of an explanation comes from a Secret, by whatever way, and that
// others are shown.
func TestAnExplanationShowsNoSecret(t *testing.T) {
	const password = "hunter2"
	secret := &unstructured.Unstructured{Object: map[string]any{
		"kind": "Secret", "metadata": map[string]any{"name": "s", "labels": map[string]any{"app": "shop"}},
		"data": map[string]any{"password": password, "on": false, "list": []any{password}, password: "x"},
	}}
	tests := map[string]struct {
		text, want string
		from       []string
	}{
		"of itself":                        {"self.data.password == 'x'", "false; self.data.password = (secret)", []string{"self"}},
		"of itself, and other fields":      {"self.metadata.labels.app == 'x'", `false; self.metadata.labels.app = "shop"`, []string{"self"}},
		"all of itself":                    {"self == {}", "false; self = (secret)", []string{"self"}},
		"a key":                            {"'x' in self.data", "false; self.data = (secret)", []string{"self"}},
		"a key that is asked for":          {"has(self.data.x)", "false; self.data.x = not set", []string{"self"}},
		"a function of it":                 {"size(self.data.password) > 100", "false; size(self.data.password) = (secret)", []string{"self"}},
		"one that is true or false":        {"self.data.on", "false; self.data.on = (secret)", []string{"self"}},
		"an element":                       {"self.data.list.all(x, x != 'hunter2')", `false; x = (secret); x != "hunter2" = false`, []string{"self"}},
		"an element under its name":        {"related.them.all(self, self.data.password == 'x')", `false; self = (secret); self.data.password == "x" = false; self.data.password = (secret)`, []string{"related.them"}},
		"an element of another":            {"related.them.all(a, a.data.list.all(b, b == 'x'))", `false; a = (secret); a.data.list.all(b, b == "x") = false; b = (secret); b == "x" = false`, []string{"related.them"}},
		"one beside others":                {"related.them[0].data.password == self.kind", `false; related.them[0].data.password = (secret); self.kind = "Secret"`, []string{"related.them"}},
		"of an index":                      {"indexes.them.a == [1]", "false; indexes.them.a = (secret)", []string{"indexes.them"}},
		"a variable of what reads Secrets": {"item == 'x'", "false; item = (secret)", []string{"related.them"}},
		"an error":                         {"int(self.data.password) == 1", "error: int() fails (no more is shown, for it may be a Secret's); self.data.password = (secret)", []string{"self"}},
		"a child":                          {"children.db.data.password == 'x'", "false; children.db.data.password = (secret)", []string{"children.db"}},
		"old values":                       {"old.data.password == 'x'", "false; old.data.password = (secret)", []string{"self"}},
		"a change":                         {"diff.exists(d, d.new == 'x')", "false; diff = (secret)", []string{"self"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &dsl.Subject{
				Object: secret, Old: secret.Object, Diff: []dsl.Change{{Path: dsl.Path{"data", "password"}, New: password}},
				Related: others{secret}, Indexes: &fakeIndexes{}, Secrets: dsl.Secrets{Read: true, From: test.from},
				Children: family{all: []dsl.ChildObject{{ChildSpec: dsl.ChildSpec{Name: "db"}, Object: secret}}}, Made: []shape.NamedChild{{Name: "db"}},
			}
			got := told(explain(t, test.text, expr.Scope{Subject: s, Vars: map[string]any{"item": password}}, "item"))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", test.text, diff)
			}
			if strings.Contains(strings.ReplaceAll(got, `!= "`+password, ""), password) {
				t.Errorf("%s", got)
			}
		})
	}
}

// others are the related objects of one relation.
type others struct{ one *unstructured.Unstructured }

func (o others) Get(string) ([]*unstructured.Unstructured, error) {
	return []*unstructured.Unstructured{o.one}, nil
}

func (others) Absent(string) string { return "" }

func (others) Relations() []dsl.Relation { return []dsl.Relation{{Name: "them"}} }

// TestAnExplanationAsksNoMoreOfIndexes holds that an explanation reads the keys that an evaluation reads: they are
// what wakes the object.
func TestAnExplanationAsksNoMoreOfIndexes(t *testing.T) {
	for _, text := range []string{"indexes.them.size() > 5", "'x' in indexes.them", "indexes.them.a.size() > 5 && indexes.them.b.size() > 5"} {
		program, err := compiler(t).Predicate(text)
		if err != nil {
			t.Fatal(err)
		}
		var asked [2][]any
		for i, ask := range []func(expr.Scope){
			func(s expr.Scope) { _, _ = program.Bool(s) },
			func(s expr.Scope) { program.Explain(s, false) },
		} {
			indexes := &fakeIndexes{}
			ask(expr.Scope{Subject: &dsl.Subject{Indexes: indexes}})
			asked[i] = slices.Clone(indexes.asked)
		}
		if diff := cmp.Diff(asked[0], asked[1]); diff != "" {
			t.Errorf("%s: -evaluated +explained:\n%s", text, diff)
		}
	}
}

func BenchmarkExplain(b *testing.B) {
	program, err := compiler(b).Predicate("self.spec.on && self.spec.size > 3 && has(self.status.ready)")
	if err != nil {
		b.Fatal(err)
	}
	s := explained()
	for b.Loop() {
		program.Explain(expr.Scope{Subject: s}, false)
	}
}

// TestAnExplanationCostsNoMoreThanTheExpression: what costs too much to be evaluated costs too much to be explained, and the
// explanation says so.
func TestAnExplanationCostsNoMoreThanTheExpression(t *testing.T) {
	list := func(size int, of func(i int) any) []any {
		out := make([]any, size)
		for i := range out {
			out[i] = of(i)
		}
		return out
	}
	for name, given := range map[string]struct {
		words []any
		text  string
	}{
		"two loops over long texts": {
			list(700, func(int) any { return strings.Repeat("w", 700) }), "self.spec.words.all(a, self.spec.words.all(b, a == b))",
		},
		"three loops over numbers": {
			list(300, func(i int) any { return int64(i) }), "self.spec.words.all(a, self.spec.words.all(b, self.spec.words.all(c, a + b + c >= 0)))",
		},
	} {
		t.Run(name, func(t *testing.T) {
			program, err := compiler(t).Predicate(given.text)
			if err != nil {
				t.Fatal(err)
			}
			object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"words": given.words}}}
			scope := expr.Scope{Subject: &dsl.Subject{Object: object}}
			_, err = program.Bool(scope)
			if err == nil {
				t.Fatal("it does not cost too much")
			}
			want := dsl.Clause{Text: given.text, Error: err.Error()}
			if diff := cmp.Diff(want, program.Explain(scope, false)); diff != "" {
				t.Errorf("the explanation (-want +got):\n%s", diff)
			}
		})
	}
}
