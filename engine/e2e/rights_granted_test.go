// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// givesRights is an operator whose children are roles and bindings, of each sort that takes a right of its own. NS stands for the
// namespace, in names of the cluster.
const givesRights = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: gives}
resources:
  - resource: works.v1.e2e.example.com
    handlers:
      - id: access
        apply:
          held:
            apiVersion: rbac.authorization.k8s.io/v1
            kind: Role
            metadata: {name: "${self.metadata.name}-held"}
            rules:
              - {apiGroups: [apps], resources: [deployments, deployments/scale], verbs: [get, list]}
              - {apiGroups: [""], resources: [secrets], resourceNames: ["${self.metadata.name}"], verbs: [get]}
          binding:
            apiVersion: rbac.authorization.k8s.io/v1
            kind: RoleBinding
            metadata: {name: "${self.metadata.name}-held"}
            roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "${self.metadata.name}-held"}
          worked:
            apiVersion: rbac.authorization.k8s.io/v1
            kind: Role
            metadata: {name: worked}
            rules: "${[{'apiGroups': ['batch'], 'resources': ['jobs'], 'verbs': ['get']}]}"
          workers:
            apiVersion: rbac.authorization.k8s.io/v1
            kind: RoleBinding
            metadata: {name: worked}
            roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: worked}
          viewers:
            apiVersion: rbac.authorization.k8s.io/v1
            kind: RoleBinding
            metadata: {name: viewers}
            roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
          sum:
            ownership: labelled
            template:
              apiVersion: rbac.authorization.k8s.io/v1
              kind: ClusterRole
              metadata: {name: NS-sum}
              aggregationRule: {clusterRoleSelectors: [{matchLabels: {e2e: NS}}]}
              rules: []
          everywhere:
            ownership: labelled
            template:
              apiVersion: rbac.authorization.k8s.io/v1
              kind: ClusterRoleBinding
              metadata: {name: NS-sum}
              roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: NS-edit}
`

// TestChildrenThatGiveRightsAway runs an operator whose children are roles and bindings with exactly the rights that are printed:
// nothing is refused. Without any of those that the API server asks for besides, the condition says what may not be given away, and
// the operator knows which right it lacks; when that is given, it goes on.
func TestChildrenThatGiveRightsAway(t *testing.T) {
	t.Parallel()
	const group = "rbac.authorization.k8s.io"
	tests := map[string]struct {
		// lacks is the right that is withheld; its name has NS for the namespace.
		lacks rbac.Rule
		// says is what the condition has in it.
		says []string
	}{
		"nothing is refused with all rights": {},
		"without one that a role grants": {
			rbac.Rule{Group: "apps", Resource: "deployments", Subresource: "scale", Verb: "list"},
			[]string{`w-held" is forbidden`, `not currently held: {APIGroups:["apps"], Resources:["deployments/scale"], Verbs:["list"]}; `},
		},
		"without one that a role grants by a name that is an expression": {
			rbac.Rule{Resource: "secrets", Verb: "get"},
			[]string{`w-held" is forbidden`, `not currently held: {APIGroups:[""], Resources:["secrets"], ResourceNames:["w"], Verbs:["get"]}; `},
		},
		"without escalate on a role": {
			rbac.Rule{Group: group, Resource: "roles", Verb: "escalate", Name: "worked"},
			[]string{`worked" is forbidden`, `not currently held: {APIGroups:["batch"], Resources:["jobs"], Verbs:["get"]}; `},
		},
		"without bind on a role": {
			rbac.Rule{Group: group, Resource: "roles", Verb: "bind", Name: "worked"},
			[]string{`rolebindings.rbac.authorization.k8s.io "worked" is forbidden`, `not currently held: {APIGroups:["batch"], Resources:["jobs"], Verbs:["get"]}; `},
		},
		"without bind on a role of the cluster": {
			rbac.Rule{Group: group, Resource: "clusterroles", Verb: "bind", Name: "view"},
			[]string{`rolebindings.rbac.authorization.k8s.io "viewers" is forbidden`, `not currently held: {APIGroups:[""], Resources:["`, " more; "},
		},
		"without escalate on a role that has the rules of others": {
			rbac.Rule{Group: group, Resource: "clusterroles", Verb: "escalate", Name: "NS-sum"},
			[]string{`-sum" is forbidden: must have cluster-admin privileges to use the aggregationRule; `},
		},
		"without bind on a role of the cluster in the whole cluster": {
			rbac.Rule{Group: group, Resource: "clusterroles", Verb: "bind", Name: "NS-edit"},
			[]string{`clusterrolebindings.rbac.authorization.k8s.io "`, `not currently held: {APIGroups:["e2e.example.com"], Resources:["works"], Verbs:["update"]}; `},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newGiving(t)
			lacks := test.lacks
			lacks.Name = strings.ReplaceAll(lacks.Name, "NS", s.ns)
			withheld := func(r rbac.Rule) bool {
				return r.Target() == lacks.Target() && r.Verb == lacks.Verb && (lacks.Name == "" || r.Name == lacks.Name)
			}
			needed := rbac.Of(s.op, rbac.Settings{Namespace: s.ns})
			if lacks.Verb != "" && !slices.ContainsFunc(needed, withheld) {
				t.Fatalf("the right to %s is not needed: %v", lacks, needed)
			}
			s.allow(t, slices.DeleteFunc(slices.Clone(needed), withheld))
			running, proxy := s.run(t)
			if lacks.Verb != "" {
				lacks.Namespace = needed[slices.IndexFunc(needed, withheld)].Namespace
				s.await(t, "Forbidden", append(test.says, "allow it to the operator: operator rbac prints the roles")...)
				awaitCheck(t, running, "rights/"+lacks.Target(), ops.Warn, "may not "+lacks.String()+" (handler works/access)")
				s.allow(t, slices.DeleteFunc(slices.Clone(needed), func(r rbac.Rule) bool { return !withheld(r) }))
			}
			s.await(t, "AllApplied")
			running.AwaitReady(t)
			s.works.Delete(t, "w")
			s.works.AwaitGone(t, "w")
			for _, r := range proxy.Requests(cluster.On("*", "*")) {
				if r.Code == http.StatusForbidden && lacks.Verb == "" {
					t.Errorf("refused: %s %s", r.Verb, r.URI)
				}
			}
		})
	}
}

// giving is an operator of givesRights.
type giving struct {
	ns    string
	op    *dsl.Operator
	user  *cluster.User
	works *cluster.Objects
}

// newGiving makes the operator, and a role of the cluster that it is to bind.
func newGiving(t *testing.T) *giving {
	t.Helper()
	ns := plane.Namespace(t)
	roles := plane.Kubernetes().RbacV1().ClusterRoles()
	edit := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: ns + "-edit"}, Rules: []rbacv1.PolicyRule{cluster.Rule("e2e.example.com", "works", "update")}}
	if _, err := roles.Create(t.Context(), edit, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := roles.Delete(context.WithoutCancel(t.Context()), edit.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return &giving{ns, parsed(t, strings.ReplaceAll(givesRights, "NS", ns), ns), plane.User("gives"), plane.Objects(works, ns)}
}

// allow grants rights to the operator's account.
func (s *giving) allow(t *testing.T, rules []rbac.Rule) {
	t.Helper()
	for _, role := range rbac.Roles(rules) {
		var policies []rbacv1.PolicyRule
		for _, p := range role.Policies {
			policies = append(policies, rbacv1.PolicyRule{APIGroups: []string{p.Group}, Resources: []string{p.Resource}, ResourceNames: p.Names, Verbs: p.Verbs})
		}
		s.user.AllowIn(t, role.Namespace, policies...)
	}
}

// run runs the operator, and makes a work.
func (s *giving) run(t *testing.T) (*cluster.Running, *cluster.Proxy) {
	t.Helper()
	proxy := cluster.NewProxy(t, s.user.Config())
	running := cluster.Run(t, s.op, engine.Settings{Config: proxy.Config(), Namespace: s.ns})
	s.works.Create(t, work("w", "x"))
	return running, proxy
}

// await waits until the condition of the work has the reason and all the words, in one line.
func (s *giving) await(t *testing.T, reason string, words ...string) {
	t.Helper()
	o := s.works.Await(t, "w", fmt.Sprintf("the reason %s with %q", reason, words), func(o *unstructured.Unstructured) bool {
		got, message := verdictOf(o)
		return got == reason && containsAll(message, words...)
	})
	if _, message := verdictOf(o); strings.Contains(message, "\n") || len(message) > 700 {
		t.Errorf("the condition says\n%s", message)
	}
}
