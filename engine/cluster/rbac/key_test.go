// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"context"
	"slices"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
)

// TestTheKeyIsARightOfThoseWhoHandleSecrets holds that no other account needs it.
func TestTheKeyIsARightOfThoseWhoHandleSecrets(t *testing.T) {
	nothing := func(context.Context, *dsl.Request) error { return nil }
	for name, tt := range map[string]struct {
		declare func(op *dsl.Operator)
		want    bool
	}{
		"Secrets": {func(op *dsl.Operator) {
			op.Resource("secrets.v1", func(r *dsl.Resource) { r.OnCreate("made", nothing) })
		}, true},
		"Secrets, level-triggered": {func(op *dsl.Operator) {
			op.Resource("secrets.v1", func(r *dsl.Resource) { r.OnReconcile("keep", nothing) })
		}, false},
		"what is related to Secrets": {func(op *dsl.Operator) {
			op.Resource("pods.v1", func(r *dsl.Resource) {
				r.Relates(dsl.Relation{Name: "creds", Resource: dsl.ResourceName{Resource: "secrets", Version: "v1"}})
				r.OnCreate("made", nothing)
			})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			op := dsl.New("op")
			op.Scope.Namespaces = []string{"team"}
			tt.declare(op)
			rules := rbac.Of(op, rbac.Settings{Namespace: "ops"})
			for _, verb := range []string{"get", "create"} {
				got := slices.ContainsFunc(rules, func(r rbac.Rule) bool {
					return r.Resource == "secrets" && r.Verb == verb && r.Namespace == "ops" && (verb == "create" || r.Name == "op-key")
				})
				if got != tt.want {
					t.Errorf("it needs to %s the key: %t, want %t: %v", verb, got, tt.want, rules)
				}
			}
		})
	}
}
