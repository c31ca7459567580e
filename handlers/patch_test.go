// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
)

// patching has the calls of a handler that patches.
type patching struct {
	patched []any
	back    []string
}

func (p *patching) Patch(_ context.Context, fields any, spec dsl.TargetSpec) (*unstructured.Unstructured, error) {
	p.patched = append(p.patched, fields, spec)
	return nil, nil
}

func (p *patching) GiveBack(_ context.Context, handler, key string) error {
	p.back = append(p.back, handler+"/"+key)
	return nil
}

func (p *patching) Keys(string) []string { return nil }

// TestPatchSaysWhichFieldsAreOwned holds what the action patches for an object, and when it gives back.
func TestPatchSaysWhichFieldsAreOwned(t *testing.T) {
	node := func(labels map[string]any) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "web", "labels": labels}}
	}
	const short = `{apiVersion: v1, kind: Node, metadata: {name: "${self.spec.name}", labels: {"n-${self.spec.replicas}": "${self.spec.list[0]}"}}}`
	tests := map[string]struct {
		handler string
		want    []any
		back    []string
		err     bool
	}{
		"the object itself":            {handler: `patch: ` + short, want: []any{node(map[string]any{"n-3": "a"}), dsl.TargetSpec{Handler: "one"}}},
		"options":                      {handler: `patch: {force: true, reach: cluster, template: ` + short + `}`, want: []any{node(map[string]any{"n-3": "a"}), dsl.TargetSpec{Handler: "one", Force: true, Reach: dsl.ReachCluster}}},
		"a label that is left out":     {handler: `patch: {apiVersion: v1, kind: Node, metadata: {name: web, labels: {a: "${self.?spec.nothing}", b: c}}}`, want: []any{node(map[string]any{"b": "c"}), dsl.TargetSpec{Handler: "one"}}},
		"an expression that gives all": {handler: `patch: {template: "${{'apiVersion': dyn('v1'), 'kind': dyn('Node'), 'metadata': dyn({'name': dyn('web'), 'labels': dyn({'a': 'b'})})}}"}`, want: []any{node(map[string]any{"a": "b"}), dsl.TargetSpec{Handler: "one"}}},
		"what is not wanted":           {handler: `includeWhen: self.spec.replicas > 3` + "\npatch: " + short, back: []string{"one/"}},
		"what is wanted":               {handler: `includeWhen: self.spec.replicas > 2` + "\npatch: " + short, want: []any{node(map[string]any{"n-3": "a"}), dsl.TargetSpec{Handler: "one"}}},
		"a value that is not there":    {handler: `patch: {apiVersion: v1, kind: Node, metadata: {name: web, labels: {a: "${self.spec.nothing}"}}}`, err: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a, targets := prepared(t, tt.handler, foo), &patching{}
			a.request.Targets = targets
			err := a.run(t)
			if diff := cmp.Diff([]any{tt.want, tt.back, tt.err}, []any{targets.patched, targets.back, err != nil}); diff != "" {
				t.Errorf("(-want +got), error %v:\n%s", err, diff)
			}
		})
	}
}

// TestPatchDeclaresItsRights holds that roles can be made of what a handler patches.
func TestPatchDeclaresItsRights(t *testing.T) {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	tests := map[string]struct {
		patch string
		want  []dsl.Need
	}{
		"a constant name and namespace": {`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}, data: {}}`, []dsl.Need{{Verbs: []string{"get", "patch"}, Kind: kind, Names: []string{"a"}, Namespace: "b"}}},
		"computed ones":                 {`{apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.spec.name}"}, data: {}}`, []dsl.Need{{Verbs: []string{"get", "patch"}, Kind: kind}}},
		"a computed kind is not known":  {`{apiVersion: v1, kind: "${self.spec.name}", metadata: {name: a}, data: {}}`, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := prepared(t, `patch: `+tt.patch, foo).handler
			if diff := cmp.Diff(tt.want, h.Needs); diff != "" || h.Declared != (tt.want != nil) {
				t.Errorf("declared: %t; needs (-want +got):\n%s", h.Declared, diff)
			}
			if diff := cmp.Diff([]string{"one"}, h.Known.Patches); diff != "" || !h.Known.Reads.Only || !h.NoOld {
				t.Errorf("it is level-triggered by what it reads: %t; patches (-want +got):\n%s", h.Known.Reads.Only, diff)
			}
		})
	}
}
