// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
)

// TestARightForAnObjectCountsWhereTheObjectIs holds in which namespaces a right is needed that comes of writing an object of another
// kind, and that it is what was declared.
func TestARightForAnObjectCountsWhereTheObjectIs(t *testing.T) {
	kind := func(name string) rbac.Kind {
		return rbac.Kind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: name}
	}
	view := dsl.Need{Verbs: []string{"bind"}, Resource: dsl.ResourceName{Resource: "clusterroles", Group: "rbac.authorization.k8s.io"}, Names: []string{"view"}}
	grant := func(of string, resource, subresource string, verbs ...string) dsl.Need {
		return dsl.Need{Verbs: verbs, Resource: dsl.ResourceName{Resource: resource}, Subresource: subresource, Names: []string{"x"}, For: kind(of)}
	}
	of := func(n dsl.Need, written string) dsl.Need { n.For = kind(written); return n }
	in := func(n dsl.Need, namespace string) dsl.Need { n.Namespace = namespace; return n }
	tests := map[string]struct {
		needs []dsl.Need
		want  []string
	}{
		"a role of the cluster, bound in namespaces":          {[]dsl.Need{of(view, "RoleBinding")}, []string{"bind clusterroles of rbac.authorization.k8s.io named view in a", "bind clusterroles of rbac.authorization.k8s.io named view in b"}},
		"a role of the cluster, bound in one":                 {[]dsl.Need{in(of(view, "RoleBinding"), "c")}, []string{"bind clusterroles of rbac.authorization.k8s.io named view in c"}},
		"a role of the cluster, bound everywhere":             {[]dsl.Need{of(view, "ClusterRoleBinding")}, []string{"bind clusterroles of rbac.authorization.k8s.io named view"}},
		"bound here and everywhere":                           {[]dsl.Need{of(view, "RoleBinding"), of(view, "ClusterRoleBinding")}, []string{"bind clusterroles of rbac.authorization.k8s.io named view"}},
		"declared without a kind, which may be either":        {[]dsl.Need{view}, []string{"bind clusterroles of rbac.authorization.k8s.io named view"}},
		"what a role of the cluster grants, is granted there": {[]dsl.Need{grant("ClusterRole", "pods", "", "get")}, []string{"get pods named x"}},
		"what a role grants, by name whatever the verb":       {[]dsl.Need{in(grant("Role", "pods", "", "create", "list"), "c")}, []string{"list,create pods named x in c"}},
		"what a role grants, without asking what is served":   {[]dsl.Need{in(grant("Role", "*", "status", "*"), "c")}, []string{"* */status named x in c"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			op := foos(func(r *dsl.Resource) { r.OnReconcile("give", nothing, dsl.WithNeeds(test.needs...)) })
			op.Scope.Namespaces = []string{"a", "b"}
			if err := op.Validate(); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, line := range lines(rbac.Of(op, rbac.Settings{})) {
				if line != "list,watch foos of example.com in a" && line != "list,watch foos of example.com in b" {
					got = append(got, line)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("rights (-want +got):\n%s", diff)
			}
		})
	}
}

// TestARightThatARoleGrantsMakesNoChild holds that the operator is not taken to make what it lets others make.
func TestARightThatARoleGrantsMakesNoChild(t *testing.T) {
	pods := dsl.Need{Verbs: []string{"create"}, Resource: dsl.ResourceName{Resource: "pods"}}
	granted := pods
	granted.For = rbac.Kind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}
	for want, need := range map[string]dsl.Need{"": granted, "update foos/finalizers of example.com?": pods} {
		op := foos(func(r *dsl.Resource) {
			r.Owns("pods")
			r.OnReconcile("give", nothing, dsl.WithNeeds(need))
		})
		got := slices.DeleteFunc(lines(rbac.Of(op, rbac.Settings{})), func(line string) bool { return !strings.Contains(line, "finalizers") })
		if strings.Join(got, ",") != want {
			t.Errorf("of %+v it follows %q, want %q", need, got, want)
		}
	}
}

// TestARightThatCountsEverywhereIsAskedForEverywhere: a right that is needed in namespaces, and also for an object without one, is
// no right of namespaces, which are all that a scope of patterns asks for.
func TestARightThatCountsEverywhereIsAskedForEverywhere(t *testing.T) {
	pods := dsl.Need{Verbs: []string{"get"}, Resource: dsl.ResourceName{Resource: "pods"}, Why: "a role grants it"}
	everywhere := pods
	everywhere.For = rbac.Kind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	for name, needs := range map[string][]dsl.Need{"first": {everywhere, pods}, "last": {pods, everywhere}} {
		op := foos(func(r *dsl.Resource) { r.OnReconcile("give", nothing, dsl.WithNeeds(needs...)) })
		op.Scope.Namespaces = []string{"team-*"}
		found := false
		for _, d := range rbac.Demands(rbac.Of(op, rbac.Settings{})) {
			if d.Resource == "pods" {
				found = true
				if d.Namespaced || len(d.Namespaces) != 1 || d.Reasons[0].String() != "handler foos/give: a role grants it" {
					t.Errorf("%s: the demand is %+v", name, d)
				}
			}
		}
		if !found {
			t.Errorf("%s: no handler needs pods", name)
		}
	}
}
