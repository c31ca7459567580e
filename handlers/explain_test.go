// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/dsl/shape"
	"github.com/handwerk-dev/handwerk/handlers"
)

// askedFor is an operator with a condition at each place that can have one.
const askedFor = `apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: asked}
resources:
  - resource: things.v1.example.com
    owns: [configmaps.v1]
    handlers:
      - id: filtered
        labels: {tier: gold, old: {exists: false}}
        annotations: {note: {exists: true}}
        when: self.spec.size > params.least
        with: {least: 3}
        call: it
      - id: old
        causes: [update]
        when: |
          diff.exists(d, d.path == 'spec.size')
        call: it
      - id: stepped
        steps:
          - name: first
            when: self.spec.on
            call: it
          - when: self.spec.size > params.least
            with: {least: 5}
            call: it
      - id: made
        includeWhen: self.spec.on
        apply:
          one:
            includeWhen: self.spec.size > 4
            template: {apiVersion: v1, kind: ConfigMap, metadata: {name: one}}
          each:
            forEach: ${self.spec.names}
            includeWhen: item != 'b'
            template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${item}"}}
          always: {apiVersion: v1, kind: ConfigMap, metadata: {name: always}}
      - id: entries
        forEach: ${self.spec.names}
        steps:
          - when: item == 'a'
            apply:
              own:
                includeWhen: ready(children.named)
                template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${item}-own"}}
              named: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${item}-named"}}
    daemons:
      - id: watching
        when: self.spec.off
        call: watch
  - resource: others.v1.example.com
    machine:
      when: self.spec.on
      states:
        - name: Waiting
          enter:
            - when: self.spec.size > 9
              call: it
          transitions:
            - {to: Done, when: self.status.ready}
            - {to: Done, when: 'int(self.spec.names[0]) == 1'}
            - {to: Done, manual: true}
        - name: Done
          terminal: true
`

// loaded returns the handlers of an operator's resources, by their ids.
func loaded(t *testing.T, text string) (file string, out map[string]*dsl.Handler) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "operator.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	registry := handlers.Standard()
	registry.Function(dsl.Function{Name: "it", Func: nothing, Params: struct {
		Least int `json:"least"`
	}{}})
	registry.Daemon("watch", func(ctx context.Context, _ *dsl.DaemonRequest) error { return nil })
	op, err := config.Load([]string{file}, registry)
	if err != nil {
		t.Fatal(err)
	}
	out = map[string]*dsl.Handler{}
	for _, r := range op.Resources() {
		for _, h := range r.Handlers() {
			out[h.ID] = h
		}
	}
	return file, out
}

func nothing(context.Context, *dsl.Request) error { return nil }

// clauses writes clauses one a line: the name, the line of the file, the text, the answer and the values.
func clauses(file string, list []dsl.Clause) (out []string) {
	for _, c := range list {
		line := fmt.Sprintf("%s (%s) %s: %v", c.What, strings.TrimPrefix(c.Place, file+":"), c.Text, c.Holds)
		if c.Error != "" {
			line += ", " + c.Error
		}
		for _, v := range c.Values {
			line += "; " + v.Text + " = " + v.Value
		}
		out = append(out, line)
	}
	return out
}

// TestEachConditionIsExplained holds that for an object each condition says its place, its answer and what decided.
func TestEachConditionIsExplained(t *testing.T) {
	named := func(key string) dsl.ChildObject {
		return dsl.ChildObject{ChildSpec: dsl.ChildSpec{Name: "named", Key: key, Handler: "entries.1"}, Object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": key + "-named"},
		}}}
	}
	subject := &dsl.Subject{
		Object: &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "a", "labels": map[string]any{"tier": "silver"}, "annotations": map[string]any{"note": "x"}},
			"spec":     map[string]any{"size": int64(4), "on": true, "off": false, "names": []any{"a", "b"}},
		}},
		Diff:     []dsl.Change{{Path: dsl.Path{"spec", "on"}, New: true}},
		Children: kin{all: []dsl.ChildObject{named("a")}},
		Made:     []shape.NamedChild{{Name: "named", List: true}, {Name: "own", List: true}},
	}
	file, all := loaded(t, askedFor)
	want := map[string][]string{
		"filtered": {
			`label () tier=gold: false; tier = "silver"`,
			`label () !old: true; old = not set`,
			`annotation () note: true; note = "x"`,
			`when (11) self.spec.size > params.least: true; self.spec.size = 4; params.least = 3`,
		},
		"old": {`when (16) diff.exists(d, d.path == 'spec.size'): false; diff = [{new: true, old: null, op: "", path: "spec.on"}]`},
		"stepped": {
			`step first: when (22) self.spec.on: true; self.spec.on = true`,
			`step 2: when (24) self.spec.size > params.least: false; self.spec.size = 4; params.least = 5`,
		},
		"made": {
			`includeWhen (28) self.spec.on: true; self.spec.on = true`,
			`child each["a"]: includeWhen (35) item != 'b': true; item = "a"`,
			`child each["b"]: includeWhen (35) item != 'b': false; item = "b"`,
			`child one: includeWhen (31) self.spec.size > 4: false; self.spec.size = 4`,
		},
		"entries": {
			`item a: step 1: when (41) item == 'a': true; item = "a"`,
			`item a: step 1: child own: includeWhen (44) ready(children.named): true; ready(children.named) = true`,
			`item b: step 1: when (41) item == 'a': false; item = "b"`,
			`item b: step 1: child own: includeWhen (44) ready(children.named): false; ready(children.named) = false (children.named is not there)`,
		},
		"watching": {`when (49) self.spec.off: false; self.spec.off = false`},
		"machine":  {`when (53) self.spec.on: true; self.spec.on = true`},
	}
	got := map[string][]string{}
	for id, h := range all {
		got[id] = clauses(file, h.Explain(subject))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	state := all["machine"].Machine.States[0]
	ways := state.ExplainCode(subject)
	for _, way := range state.Transitions {
		ways = append(ways, way.Explain(subject))
	}
	if diff := cmp.Diff([]string{
		`step enter: when (57) self.spec.size > 9: false; self.spec.size = 4`,
		`when (60) self.status.ready: false; self.status = not set`,
		`when (61) int(self.spec.names[0]) == 1: false, type conversion error from 'string' to 'int'; self.spec.names[0] = "a"`,
		`when () : false`,
	}, clauses(file, ways)); diff != "" {
		t.Errorf("of the machine: -want +got:\n%s", diff)
	}
}

// kin are children that are there.
type kin struct {
	dsl.ChildReader
	all []dsl.ChildObject
}

func (k kin) All() ([]dsl.ChildObject, error) { return k.all, nil }
