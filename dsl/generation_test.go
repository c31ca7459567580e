// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import "testing"

func TestWhoseStatusGetsTheObservedGeneration(t *testing.T) {
	looks := func(r *Resource) { r.OnReconcile("h", nothing) }
	sets := func(r *Resource) { r.OnReconcile("h", nothing, Needs("patch", "self/status")) }
	schema := func(status map[string]any) map[string]any {
		within := map[string]any{"properties": map[string]any{"status": map[string]any{"properties": status}}}
		return map[string]any{"spec": map[string]any{"versions": []any{map[string]any{"schema": map[string]any{"openAPIV3Schema": within}}}}}
	}
	tests := map[string]struct {
		name   string
		define func(*Resource)
		want   bool
	}{
		"a handler only looks":                   {"foos.v1.example.com", looks, false},
		"a handler sets the status":              {"foos.v1.example.com", sets, true},
		"a handler sets the status of others":    {"foos.v1.example.com", func(r *Resource) { r.OnReconcile("h", nothing, Needs("patch", "bars.example.com/status")) }, false},
		"a handler sets the object":              {"foos.v1.example.com", func(r *Resource) { r.OnReconcile("h", nothing, Needs("patch", "self")) }, false},
		"the engine keeps Ready":                 {"foos.v1.example.com", func(r *Resource) { r.Ready = new(true); looks(r) }, true},
		"its own schema has the field":           {"foos.v1.example.com", func(r *Resource) { r.CRD = schema(map[string]any{"observedGeneration": nil}); looks(r) }, true},
		"its own schema does not have the field": {"foos.v1.example.com", func(r *Resource) { r.CRD = schema(map[string]any{"a": nil}); looks(r) }, false},
		"a built-in kind":                        {"deployments.v1.apps", sets, false},
		"the cache has metadata alone":           {"foos.v1.example.com", func(r *Resource) { r.Cache = CacheMetadata; sets(r) }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			op := New("test")
			r := op.Resource(test.name, test.define)
			if got := r.SetsObservedGeneration(); got != test.want {
				t.Errorf("it is %v, want %v", got, test.want)
			}
		})
	}
}
