// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
)

func TestScopesAndPluralsComeFromTheOperatorsOwnCRDs(t *testing.T) {
	op := foos(func(r *dsl.Resource) {
		r.CRD = map[string]any{"spec": map[string]any{
			"group": "example.com", "scope": "Cluster", "names": map[string]any{"plural": "foos", "kind": "Foolish"},
		}}
	})
	lookup := rbac.Guess(op)
	want := rbac.Served{Resource: "foos", Status: true}
	for _, got := range []rbac.Served{
		lookup(dsl.ResourceName{Resource: "foos", Group: "example.com"}, rbac.Kind{}),
		lookup(dsl.ResourceName{}, rbac.Kind{Group: "example.com", Version: "v1", Kind: "Foolish"}),
	} {
		if got != want {
			t.Errorf("looked up %+v, want %+v", got, want)
		}
	}
}

// TestScopesComeFromCRDsBesideTheConfiguration holds that the scope of somebody else's kind is known from its CRD, and that the operator's
// own CRD counts more.
func TestScopesComeFromCRDsBesideTheConfiguration(t *testing.T) {
	crd := func(group, plural, scope string) map[string]any {
		return map[string]any{"spec": map[string]any{"group": group, "scope": scope, "names": map[string]any{"plural": plural, "kind": "Pool"}}}
	}
	op := foos(func(r *dsl.Resource) { r.CRD = crd("example.com", "foos", "Namespaced") })
	lookup := rbac.Guess(op, crd("other.io", "pools", "Cluster"), crd("example.com", "foos", "Cluster"))
	for name, namespaced := range map[dsl.ResourceName]bool{
		{Resource: "pools", Group: "other.io"}:   false,
		{Resource: "foos", Group: "example.com"}: true,
		{Resource: "lakes", Group: "other.io"}:   true,
	} {
		if got := lookup(name, rbac.Kind{}); got.Namespaced != namespaced {
			t.Errorf("%s is namespaced: %t, want %t", name, got.Namespaced, namespaced)
		}
	}
}
