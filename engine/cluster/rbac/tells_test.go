// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
)

// TestWhatTheEngineSaysOnObjectsIsPrinted holds for which resources the engine's own conditions take a right, which is optional.
func TestWhatTheEngineSaysOnObjectsIsPrinted(t *testing.T) {
	looks := func(r *dsl.Resource) { r.OnReconcile("look", nothing) }
	tests := map[string]struct {
		op   *dsl.Operator
		want []string
	}{
		"one that only looks may fail":       {foos(looks), []string{"get foos.example.com?", "patch foos.example.com/status?"}},
		"one that patches other objects":     {foos(patches), []string{"get foos.example.com", "patch foos.example.com", "patch foos.example.com/status?"}},
		"a cache of metadata shows no other": {foos(func(r *dsl.Resource) { r.Cache = dsl.CacheMetadata; looks(r) }), nil},
		"a schedule has no object":           {foos(func(r *dsl.Resource) { r.Schedule(dsl.Timing{Cron: "@daily"}, "census", nothing) }), nil},
		"a kind of Kubernetes itself":        {func() *dsl.Operator { op := dsl.New("foo"); op.Resource("nodes.v1", looks); return op }(), nil},
		"a handler that sets the status": {
			foos(func(r *dsl.Resource) { r.OnReconcile("status", nothing, dsl.Needs("patch", "self/status")) }),
			[]string{"get foos.example.com", "patch foos.example.com/status"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range rbac.Of(tt.op, rbac.Settings{}) {
				if r.Verb != "get" && r.Verb != "patch" || r.Resource == "customresourcedefinitions" || r.Resource != "foos" && !r.Optional {
					continue
				}
				line := r.String()
				if r.Optional {
					line += "?"
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("rights (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPodsOfChildrenMayBeListed holds that the right to read why Pods do not run is optional, and that it is only for resources whose
// children run Pods.
func TestPodsOfChildrenMayBeListed(t *testing.T) {
	for kind, want := range map[string]bool{"deployments.v1.apps": true, "statefulsets.v1.apps": true, "configmaps.v1": false} {
		op := foos(func(r *dsl.Resource) {
			r.Ready = new(true)
			r.Owns(kind)
			r.OnReconcile("look", nothing)
		})
		got := slices.ContainsFunc(rbac.Of(op, rbac.Settings{}), func(r rbac.Rule) bool { return r.Resource == "pods" && r.Verb == "list" && r.Optional })
		if got != want {
			t.Errorf("with children %s, Pods may be listed: %t, want %t", kind, got, want)
		}
	}
}
