// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRisks(t *testing.T) {
	who := func(names ...string) (out []Reason) {
		for _, name := range names {
			out = append(out, Reason{Who: name, Why: "apply"})
		}
		return out
	}
	const roles = "rbac.authorization.k8s.io"
	for name, test := range map[string]struct {
		rules []Rule
		want  []string
	}{
		"usual rights are no risk": {rules: []Rule{
			{Resource: "configmaps", Verb: "patch", Reasons: who("handler foos/a")},
			{Resource: "secrets", Verb: "create", Reasons: who("handler foos/a")},
			{Resource: "namespaces", Verb: "list", Reasons: who(Engine)},
			{Resource: "pods", Subresource: "log", Verb: "get", Reasons: who("handler foos/a")},
		}},
		"each verb on Secrets is one risk, for all who need it": {
			rules: []Rule{
				{Resource: "secrets", Verb: "list", Reasons: []Reason{{Engine, "watches children of foos"}}},
				{Resource: "secrets", Verb: "get", Namespaced: true, Reasons: who("handler foos/b", "handler foos/a")},
				{Resource: "secrets", Verb: "get", Namespaced: true, Reasons: who("handler foos/a")},
			},
			want: []string{"read Secrets in all namespaces (handler foos/a, handler foos/b)"},
		},
		"a right of the engine alone has its purpose": {
			rules: []Rule{{Resource: "secrets", Verb: "list", Reasons: []Reason{{Engine, "watches children of foos"}}}},
			want:  []string{"read Secrets (engine: watches children of foos)"},
		},
		"Secrets of some namespaces": {
			rules: []Rule{
				{Resource: "secrets", Verb: "get", Namespace: "b", Reasons: who("handler foos/a")},
				{Resource: "secrets", Verb: "get", Namespace: "a", Reasons: who("handler foos/a")},
			},
			want: []string{"read Secrets in namespaces a, b (handler foos/a)"},
		},
		"one Secret beside all of another handler": {
			rules: []Rule{
				{Resource: "secrets", Verb: "get", Name: "ca", Namespace: "infra", Reasons: who("handler foos/a")},
				{Resource: "secrets", Verb: "get", Reasons: who("handler foos/b")},
			},
			want: []string{"read Secrets (handler foos/b)", "read Secrets: ca in namespace infra (handler foos/a)"},
		},
		"the widest come first": {
			rules: []Rule{
				{Resource: "namespaces", Verb: "delete", Reasons: who("handler foos/a")},
				{Group: roles, Resource: "clusterroles", Verb: "bind", Name: "admin", Reasons: who("handler foos/a")},
				{Group: roles, Resource: "clusterroles", Verb: "patch", Reasons: who("handler foos/a")},
				{Group: roles, Resource: "roles", Verb: "escalate", Reasons: who("handler foos/a")},
				{Resource: "users", Verb: "impersonate", Reasons: who("handler foos/a")},
				{Resource: "pods", Subresource: "exec", Verb: "create", Reasons: who("handler foos/a")},
				{Resource: "serviceaccounts", Subresource: "token", Verb: "create", Reasons: who("handler foos/a")},
				{Group: "*", Resource: "*", Verb: "*", Reasons: who("handler foos/a")},
			},
			want: []string{
				"do what it wants with every resource (handler foos/a)", "act as other users (handler foos/a)",
				"write roles with rights that it does not have (handler foos/a)", "bind roles whose rights it does not have: admin (handler foos/a)",
				"write ClusterRoles (handler foos/a)", "make tokens of service accounts (handler foos/a)",
				"run commands in Pods (handler foos/a)", "delete Namespaces (handler foos/a)",
			},
		},
		"all verbs on one resource are not those on others": {
			rules: []Rule{{Group: "example.com", Resource: "foos", Verb: "*", Reasons: who("handler foos/a")}},
		},
		"stars": {
			rules: []Rule{
				{Resource: "*", Verb: "get", Reasons: who("handler foos/core")},
				{Group: "*", Resource: "secrets", Verb: "list", Reasons: who("handler foos/groups")},
				{Group: "*", Resource: "*", Verb: "watch", Reasons: who("handler foos/everything")},
				{Resource: "pods", Subresource: "*", Verb: "create", Reasons: who("handler foos/subresources")},
				{Group: "apps", Resource: "*", Verb: "get", Reasons: who("handler foos/apps")},
			},
			want: []string{
				"run commands in Pods (handler foos/core, handler foos/everything, handler foos/subresources)",
				"reach kubelets (handler foos/core, handler foos/everything)",
				"read Secrets (handler foos/core, handler foos/everything, handler foos/groups)",
				"approve certificates (handler foos/everything)",
			},
		},
		"what Kubernetes names besides": {
			rules: []Rule{
				{Resource: "namespaces", Verb: "patch", Reasons: who("handler foos/a")},
				{Resource: "persistentvolumes", Verb: "create", Reasons: who("handler foos/a")},
				{Group: "apps", Resource: "deployments", Verb: "patch", Namespaced: true, Reasons: who("handler foos/a")},
			},
			want: []string{
				"change Namespaces, whose labels choose policies (handler foos/a)",
				"make PersistentVolumes, which can mount files of nodes (handler foos/a)",
				"make Pods, and so use Secrets and service accounts in all namespaces (handler foos/a)",
			},
		},
		"a long list is cut": {
			rules: []Rule{{Resource: "namespaces", Verb: "delete", Reasons: who("handler e", "handler d", "handler c", "handler b", "handler a")}},
			want:  []string{"delete Namespaces (handler a, handler b, handler c and 2 more)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, risk := range Risks(test.rules) {
				got = append(got, risk.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
