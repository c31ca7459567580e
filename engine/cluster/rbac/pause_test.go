// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"slices"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
)

// TestWhoMaySeeThatANamespaceIsPaused holds that an operator with rights in namespaces by name asks for none elsewhere.
func TestWhoMaySeeThatANamespaceIsPaused(t *testing.T) {
	for name, want := range map[string]bool{"": true, "team-*": true, "team-a": false} {
		op := foos(func(*dsl.Resource) {})
		if name != "" {
			op.Scope.Namespaces = []string{name}
		}
		watches := slices.ContainsFunc(rbac.Of(op, rbac.Settings{}), func(r rbac.Rule) bool { return r.Resource == "namespaces" && r.Verb == "watch" })
		if watches != want {
			t.Errorf("in namespaces %q it may watch namespaces: %t, want %t", name, watches, want)
		}
	}
}
