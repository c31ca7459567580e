// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
)

func TestCleanupNeedsWhatItTakesAway(t *testing.T) {
	own := []string{
		"get,delete configmaps named foo-children in system", "get,delete configmaps named foo-deletions in system", "get,delete configmaps named foo-paused in system", "get,delete secrets named foo-key in system",
		"get,patch deployments of apps named handwerk-foo in system", "create leases of coordination.k8s.io in system", "get,update,delete leases of coordination.k8s.io named foo-leader in system",
	}
	tests := map[string]struct {
		op   *dsl.Operator
		want []string
	}{
		"an operator of custom resources may have set conditions": {
			op:   foos(func(*dsl.Resource) {}),
			want: append([]string{"get,list,patch namespaces", "get,list,patch foos of example.com", "patch foos/status of example.com"}, own...),
		},
		"children bear marks": {
			op: foos(func(r *dsl.Resource) { r.Owns("configmaps") }),
			want: append([]string{
				"get,list,patch configmaps", "get,list,patch namespaces", "get,list,patch foos of example.com", "patch foos/status of example.com", "delete configmaps named foo-children in system", "delete configmaps named foo-deletions in system", "delete configmaps named foo-paused in system",
			}, own[3:]...),
		},
		"children that give rights away are written, too": {
			op: foos(func(r *dsl.Resource) {
				role := rbac.Kind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}
				roles := dsl.ResourceName{Resource: "roles", Group: "rbac.authorization.k8s.io"}
				r.OnReconcile("give", nothing, dsl.Needs("get", "secrets"), dsl.WithNeeds(
					dsl.Need{Verbs: []string{"get", "list"}, Resource: dsl.ResourceName{Resource: "pods"}, For: role, Names: []string{"x"}},
					dsl.Need{Verbs: []string{"bind"}, Resource: roles, Names: []string{"view"}},
					dsl.Need{Verbs: []string{"escalate"}, Resource: roles},
				))
			}),
			want: append([]string{
				"get,list,patch namespaces", "get,list pods named x", "get,list,patch foos of example.com", "patch foos/status of example.com",
				"escalate roles of rbac.authorization.k8s.io", "bind roles of rbac.authorization.k8s.io named view",
			}, own...),
		},
		"what handlers have patched is given back": {
			op:   foos(patches),
			want: append([]string{"get,list,patch namespaces", "list nodes", "get,patch nodes named worker", "get,list,patch foos of example.com", "patch foos/status of example.com"}, own...),
		},
		"a built-in kind whose status is not written has no conditions of it": {
			op:   func() *dsl.Operator { op := dsl.New("foo"); op.Resource("pods.v1", func(*dsl.Resource) {}); return op }(),
			want: append([]string{"get,list,patch namespaces", "get,list,patch pods"}, own...),
		},
		"namespaces that are known": {
			op: func() *dsl.Operator {
				op := foos(func(*dsl.Resource) {})
				op.Scope.Namespaces = []string{"team-b", "team-a"}
				return op
			}(),
			want: append(append([]string{}, own...),
				"get,list,patch foos of example.com in team-a", "patch foos/status of example.com in team-a",
				"get,list,patch foos of example.com in team-b", "patch foos/status of example.com in team-b"),
		},
		"names of namespaces and their labels, which say what is its own": {
			op: func() *dsl.Operator {
				op := foos(func(*dsl.Resource) {})
				op.Scope.Namespaces, op.Scope.NamespaceSelector = []string{"team-a"}, "tenant"
				return op
			}(),
			want: append(append([]string{"get,list,patch namespaces"}, own...), "get,list,patch foos of example.com in team-a", "patch foos/status of example.com in team-a"),
		},
		"a lock with a namespace of its own, and an earlier name": {
			op: func() *dsl.Operator {
				op := foos(func(*dsl.Resource) {})
				op.Settings.LeaderElection.Namespace = "locks"
				op.Was = []string{"bar"}
				return op
			}(),
			want: []string{
				"get,list,patch namespaces", "get,list,patch foos of example.com", "patch foos/status of example.com",
				"get,delete configmaps named bar-children in locks", "get,delete configmaps named bar-deletions in locks", "get,delete configmaps named bar-paused in locks", "get,delete configmaps named foo-children in locks", "get,delete configmaps named foo-deletions in locks", "get,delete configmaps named foo-paused in locks",
				"get,delete secrets named bar-key in locks", "get,delete secrets named foo-key in locks",
				"create leases of coordination.k8s.io in locks", "get,update,delete leases of coordination.k8s.io named bar-leader in locks", "get,update,delete leases of coordination.k8s.io named foo-leader in locks",
				"get,patch deployments of apps named handwerk-foo in system",
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := lines(rbac.OfCleanup(tt.op, rbac.Settings{Namespace: "system"}, "handwerk-foo"))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
