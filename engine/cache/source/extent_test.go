// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
)

func TestAnExtentIsTheScopeOrOneNamespaceOfIt(t *testing.T) {
	tests := map[string]struct {
		scope      []string
		namespace  string
		namespaced bool
		want       []string
	}{
		"without a namespace it is the scope":             {scope: []string{"a", "b"}, namespaced: true, want: []string{"a", "b"}},
		"a namespace of the scope stands alone":           {scope: []string{"a", "b"}, namespace: "b", namespaced: true, want: []string{"b"}},
		"a namespace of the whole cluster stands alone":   {namespace: "b", namespaced: true, want: []string{"b"}},
		"a namespace outside the scope is not watched":    {scope: []string{"a"}, namespace: "b", namespaced: true},
		"a resource without namespaces is watched at all": {scope: []string{"a"}, namespace: "b", want: []string{""}},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			e := extent{NewScope(ScopeSettings{Of: dsl.Scope{Namespaces: tt.scope}}), tt.namespace}
			got, known := e.Names(tt.namespaced)
			if diff := cmp.Diff(tt.want, got); diff != "" || !known {
				t.Errorf("known is %v; names (-want +got):\n%s", known, diff)
			}
		})
	}
}

func TestASourceOfOneObjectAsksForItsRightsAlone(t *testing.T) {
	r := rigged(t, Settings{Namespace: "team-a", Object: "one", Handler: handler(nil)})
	if got, want := r.informers.source.FieldSelector, "metadata.name=one"; got != want {
		t.Errorf("the field selector is %q, want %q", got, want)
	}
	of := rbac.Rule{Group: "example.com", Resource: "foos", Verb: "list", Name: "one", Namespace: "team-a"}
	tests := map[string]struct {
		change func(*rbac.Rule)
		asks   bool
	}{
		"its object":                           {func(*rbac.Rule) {}, true},
		"all objects":                          {func(r *rbac.Rule) { r.Name = "" }, false},
		"another object":                       {func(r *rbac.Rule) { r.Name = "two" }, false},
		"all namespaces":                       {func(r *rbac.Rule) { r.Namespace = "" }, false},
		"another namespace of the scope":       {func(r *rbac.Rule) { r.Namespace = "team-b" }, false},
		"a verb that the engine does not need": {func(r *rbac.Rule) { r.Verb = "get" }, false},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			rule := of
			tt.change(&rule)
			if got := r.Asks(rule); got != tt.asks {
				t.Errorf("whether it asks for the right to %s is %v", rule, got)
			}
		})
	}
}
