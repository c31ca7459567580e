// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func rule(verb, group, resource string, names ...string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names}}
}

func clusterRole(name string, rules []rbacv1.PolicyRule) rbacv1.ClusterRole {
	return rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"role": name}}, Rules: rules}
}

func policy() *Policy {
	sum := clusterRole("sum", nil)
	sum.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"role": "pods"}}, {MatchLabels: map[string]string{"role": "sum"}}}}
	bind := func(kind, name, role string) rbacv1.ClusterRoleBinding {
		return rbacv1.ClusterRoleBinding{Subjects: []rbacv1.Subject{{Kind: kind, Name: name, Namespace: "a"}}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role}}
	}
	in := metav1.ObjectMeta{Namespace: "a", Name: "secrets"}
	return &Policy{
		Roles: []rbacv1.Role{{ObjectMeta: in, Rules: rule("get", "", "secrets", "one")}},
		ClusterRoles: []rbacv1.ClusterRole{
			clusterRole("pods", rule("list", "", "pods")), clusterRole("status", rule("patch", "*", "*/status")),
			clusterRole("all", rule("*", "*", "*")), sum,
			clusterRole("paths", []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz/*"}}}),
		},
		RoleBindings: []rbacv1.RoleBinding{
			{ObjectMeta: in, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "robot"}}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "secrets"}},
			{ObjectMeta: in, Subjects: []rbacv1.Subject{{Kind: "User", Name: "eve"}}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "all"}},
		},
		ClusterRoleBindings: []rbacv1.ClusterRoleBinding{
			bind("User", "ann", "sum"), bind("Group", "team", "status"), bind("Group", Authenticated, "paths"), bind("ServiceAccount", "boss", "all"),
		},
	}
}

func TestRequestsAreAllowedByTheirRules(t *testing.T) {
	ann, bob := User{Name: "ann", Groups: []string{Authenticated}}, User{Name: "bob", Groups: []string{"team"}}
	robot, eve := ServiceAccount("a", "robot", ""), User{Name: "eve"}
	for name, c := range map[string]struct {
		ask  Attributes
		want bool
	}{
		"what a role has that is aggregated":      {Attributes{User: ann, Verb: "list", Resource: "pods", Namespace: "b"}, true},
		"another verb":                            {Attributes{User: ann, Verb: "get", Resource: "pods"}, false},
		"another group":                           {Attributes{User: ann, Verb: "list", Group: "metrics", Resource: "pods"}, false},
		"a subresource of a resource":             {Attributes{User: ann, Verb: "list", Resource: "pods", Subresource: "status"}, false},
		"a subresource of all resources":          {Attributes{User: bob, Verb: "patch", Group: "apps", Resource: "deployments", Subresource: "status"}, true},
		"all resources with a subresource":        {Attributes{User: bob, Verb: "patch", Group: "apps", Resource: "deployments"}, false},
		"the name of a rule":                      {Attributes{User: robot, Verb: "get", Resource: "secrets", Namespace: "a", Name: "one"}, true},
		"another name":                            {Attributes{User: robot, Verb: "get", Resource: "secrets", Namespace: "a", Name: "two"}, false},
		"no name":                                 {Attributes{User: robot, Verb: "get", Resource: "secrets", Namespace: "a"}, false},
		"another namespace":                       {Attributes{User: robot, Verb: "get", Resource: "secrets", Namespace: "b", Name: "one"}, false},
		"a cluster role in its binding's space":   {Attributes{User: eve, Verb: "delete", Group: "x", Resource: "y", Subresource: "z", Namespace: "a"}, true},
		"a cluster role out of its binding's":     {Attributes{User: eve, Verb: "delete", Group: "x", Resource: "y"}, false},
		"a path":                                  {Attributes{User: ann, Verb: "get", Path: "/healthz/ping"}, true},
		"another path":                            {Attributes{User: ann, Verb: "get", Path: "/metrics"}, false},
		"a path for one with all resources":       {Attributes{User: ServiceAccount("a", "boss", ""), Verb: "get", Path: "/metrics"}, false},
		"a resource for one with all":             {Attributes{User: ServiceAccount("a", "boss", ""), Verb: "get", Resource: "nodes"}, true},
		"the same ServiceAccount of another name": {Attributes{User: ServiceAccount("b", "boss", ""), Verb: "get", Resource: "nodes"}, false},
		"everything for the masters":              {Attributes{User: User{Name: "x", Groups: []string{Masters}}, Verb: "get", Path: "/metrics"}, true},
	} {
		if got := policy().Allows(c.ask); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestWhatARuleHasBeyondOthersIsMissing(t *testing.T) {
	want := []rbacv1.PolicyRule{{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"pods", "secrets"}}}
	var got []string
	for _, r := range Missing(append(rule("get", "*", "*"), rule("list", "", "pods", "one")...), want) {
		got = append(got, Describe(r))
	}
	if diff := cmp.Diff([]string{
		`{APIGroups:[""], Resources:["pods"], Verbs:["list"]}`, `{APIGroups:[""], Resources:["secrets"], Verbs:["list"]}`,
	}, got); diff != "" {
		t.Errorf("what is missing (-want +got):\n%s", diff)
	}
	if got := Missing(rule("*", "*", "*"), want); len(got) > 0 {
		t.Errorf("one with all rights lacks %v", got)
	}
}
