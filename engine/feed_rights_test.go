// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
)

// TestFeedsAskForWhatRolesHave: a feed that asked for a right that no role has would be degraded for
// ever. So each verb that one asks for is among the rights that the operator needs, and is no optional one.
func TestFeedsAskForWhatRolesHave(t *testing.T) {
	nothing := func(context.Context, *dsl.Request) error { return nil }
	tests := map[string]func(*dsl.Resource){
		"one that only looks":        func(r *dsl.Resource) { r.OnReconcile("look", nothing) },
		"one that remembers":         func(r *dsl.Resource) { r.OnUpdate("change", nothing) },
		"one that holds deletions":   func(r *dsl.Resource) { r.OnDelete("bye", nothing) },
		"one that holds none":        func(r *dsl.Resource) { r.OnDelete("bye", nothing, dsl.NoFinalizer()) },
		"one that reads each object": func(r *dsl.Resource) { r.Cache = dsl.CacheLive; r.OnReconcile("look", nothing) },
		"one with a schedule":        func(r *dsl.Resource) { r.Schedule(dsl.Timing{Cron: "@daily"}, "census", nothing) },
		"one with a timer":           func(r *dsl.Resource) { r.Every(dsl.DefaultGracePeriod, "beat", nothing) },
		"one with children": func(r *dsl.Resource) {
			r.Owns("deployments.v1.apps")
			r.OnReconcile("child", nothing)
			r.OnDelete("bye", nothing)
		},
	}
	for name, define := range tests {
		t.Run(name, func(t *testing.T) {
			op := dsl.New("op")
			op.Resource("foos.v1.example.com", define)
			e, err := New(op, Settings{Config: &rest.Config{Host: "http://nowhere"}})
			if err != nil {
				t.Fatal(err)
			}
			needed := rbac.Of(op, rbac.Settings{})
			asked := 0
			for _, f := range e.sources.All() {
				for _, text := range f.Verbs() {
					asked++
					verb, subresource, _ := strings.Cut(text, " ")
					if !has(needed, f.Name(), subresource, verb) {
						t.Errorf("the feed of %s asks for %s, and no role has it", f.Name(), text)
					}
				}
			}
			if asked < 2 {
				t.Errorf("feeds ask for %d verbs", asked)
			}
		})
	}
}

// has reports whether the operator cannot work without a right.
func has(needed []rbac.Rule, name dsl.ResourceName, subresource, verb string) bool {
	var firm []rbac.Rule
	for _, r := range needed {
		if !r.Optional {
			firm = append(firm, r)
		}
	}
	return rbac.Has(firm, name.Group, name.Resource, subresource, verb)
}
