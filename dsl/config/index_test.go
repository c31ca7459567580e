// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
)

// withIndex loads an operator with one index, whose handler logs a message.
func withIndex(t *testing.T, index, handler string) *dsl.Operator {
	t.Helper()
	op, err := config.Parse("operator.yaml", []byte(`{apiVersion: handwerk.dev/v1alpha1, kind: Operator, metadata: {name: x},
  indexes: [`+index+`],
  resources: [{resource: foos.v1.example.com, handlers: [`+handler+`]}]}`), handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	return op
}

const logs = `{id: h, log: {message: "${indexes.them[self.spec.ref]}"}}`

// TestWhatAnIndexHasOfAnObject holds what the expressions of an index make of objects.
func TestWhatAnIndexHasOfAnObject(t *testing.T) {
	tests := map[string]struct {
		key, value string
		want       []dsl.Entry
		fault      string
	}{
		"a value under a key":                    {"self.spec.name", "self.spec.size", []dsl.Entry{{Key: "a", Value: int64(3)}}, ""},
		"in the form of templates":               {"${self.spec.name}", "${self.spec.size}", []dsl.Entry{{Key: "a", Value: int64(3)}}, ""},
		"under several keys, each once":          {"self.spec.tags", "true", []dsl.Entry{{Key: "x", Value: true}, {Key: "y", Value: true}}, ""},
		"a constant key":                         {"1", "self.spec.name", []dsl.Entry{{Key: int64(1), Value: "a"}}, ""},
		"a map that is made":                     {"self.spec.name", "{'n': self.spec.name}", []dsl.Entry{{Key: "a", Value: map[string]any{"n": "a"}}}, ""},
		"null is a value":                        {"self.spec.name", "self.spec.nothing", []dsl.Entry{{Key: "a"}}, ""},
		"a key that is not there":                {"self.spec.other", "self.spec.size", nil, "evaluating key: self.spec.other is not set"},
		"an optional that has nothing is no key": {"self.spec.?other", "self.spec.size", nil, ""},
		"nor null, nor a list without any":       {"[self.spec.nothing]", "self.spec.size", nil, ""},
		"an optional value that has nothing":     {"self.spec.name", "self.spec.?other", nil, ""},
		"a value that is not there":              {"self.spec.name", "self.spec.other", nil, "evaluating value: self.spec.other is not set"},
		"a key that cannot be worked out":        {"self.spec.size + self.spec.name", "1", nil, "evaluating key: "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			op := withIndex(t, `{name: them, resource: bars.v1.example.com, key: "`+tt.key+`", value: "`+tt.value+`"}`, logs)
			got, err := op.Indexes()[0].Entries(&unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
				"name": "a", "size": int64(3), "tags": []any{"x", "y", "x", nil}, "nothing": nil,
			}}})
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" || (err == nil) != (tt.fault == "") || err != nil && !strings.Contains(err.Error(), tt.fault) {
				t.Errorf("entries (-want +got):\n%s\nerror %v, want %q", diff, err, tt.fault)
			}
		})
	}
}

// TestWhichObjectsAnIndexLooksAt holds that selectors, labels, annotations and filters come from the configuration.
func TestWhichObjectsAnIndexLooksAt(t *testing.T) {
	op := withIndex(t, `{name: them, resource: bars.v1.example.com, key: self.metadata.name, value: 1, labels: {tier: gold}, annotations: {note: {exists: true}},
  selector: {matchLabels: {app: web}, fields: metadata.name=a}, when: self.spec.size > 1}`, logs)
	x := op.Indexes()[0]
	if x.Resource.String() != "bars.v1.example.com" || x.LabelSelector != "app=web" || x.FieldSelector != "metadata.name=a" {
		t.Errorf("index %+v", x)
	}
	wantLabels, wantAnnotations := []dsl.Match{{Key: "tier", Value: "gold"}}, []dsl.Match{{Key: "note", Op: dsl.Exists}}
	if diff := cmp.Diff([][]dsl.Match{wantLabels, wantAnnotations}, [][]dsl.Match{x.Labels, x.Annotations}); diff != "" {
		t.Error(diff)
	}
	for size, want := range map[int64]bool{1: false, 2: true} {
		holds, err := x.When(&dsl.Subject{Object: &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": size}}}})
		if holds != want || err != nil {
			t.Errorf("size %d: it is looked at: %v (%v)", size, holds, err)
		}
	}
}

// TestHandlersKnowWhichIndexesTheyRead holds that it is known of a handler in YAML, and that one which reads none does
// not run for them.
func TestHandlersKnowWhichIndexesTheyRead(t *testing.T) {
	const index = `{name: them, resource: bars.v1.example.com, key: self.metadata.name, value: 1}`
	set := func(value string) string { return `{id: h, set: {status: {a: "` + value + `"}}}` }
	tests := map[string]struct {
		handler string
		reads   []string
		runs    bool
	}{
		"one that reads by name":               {set("${indexes.them['a']}"), []string{"them"}, true},
		"one that reads in its filter":         {`{id: h, when: "'a' in indexes.them", set: {status: {a: b}}}`, []string{"them"}, true},
		"one that may read any":                {set("${indexes[self.spec.ref]['a']}"), []string{"*"}, true},
		"one that reads none":                  {set("${self.spec.ref}"), nil, false},
		"one that reads none, and asks for it": {`{id: h, causes: [reconcile, index], set: {status: {a: "${self.spec.ref}"}}}`, nil, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := withIndex(t, index, tt.handler).Resources()[0].Handlers()[0]
			if diff := cmp.Diff(tt.reads, h.Known.Reads.Indexes, cmpopts.EquateEmpty()); diff != "" || h.On(dsl.IndexChange) != tt.runs {
				t.Errorf("it runs for indexes: %v, want %v; reads (-want +got):\n%s", h.On(dsl.IndexChange), tt.runs, diff)
			}
		})
	}
}

// TestIndexesOfSeveralDocuments holds that each document may have some, and that faults are placed where they are.
func TestIndexesOfSeveralDocuments(t *testing.T) {
	const head = "apiVersion: handwerk.dev/v1alpha1\nkind: Operator\nmetadata: {name: a}\n"
	_, err := config.Parse("a.yaml", []byte(head+"indexes: [{name: one, resource: foos, key: self.kind, value: 1}]\n---\n"+
		head+"indexes: [{name: two, resource: foos, key: self.kind, value: 1}, {name: one, resource: foos, key: self.kind, value: 1}]\n"+
		"resources: [{resource: foos, handlers: [{id: one, log: {message: x}}]}]\n"), handlers.Standard())
	if want := "a.yaml:9:73: indexes[1].name: the name is used twice (first at a.yaml:4:18)"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
