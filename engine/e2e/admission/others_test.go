// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/cluster/policy"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/handlers"
)

// kept is an operator with a handler and a rule.
const kept = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: NAME}
scope: {namespaces: [NAME]}
resources:
  - resource: limitranges.v1
    handlers: [{id: seen, log: {message: "seen ${self.metadata.name}"}}]
admission:
  - {resource: configmaps.v1, validate: [{id: named, rule: "self.metadata.name != 'x'", message: no x}]}
`

// TestAdmissionOfOthersIsLeftAlone runs an operator whose policies somebody else keeps, with exactly the rights that it is said to need:
// it sends no request about them, and a policy that is gone stays gone.
func TestAdmissionOfOthersIsLeftAlone(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	op, err := config.Parse("kept.yaml", []byte(strings.ReplaceAll(kept, "NAME", ns)), handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	op.Settings.AdmissionByOthers = true
	user := plane.User("others")
	for _, role := range rbac.Roles(rbac.Of(op, rbac.Settings{Namespace: ns})) {
		var rules []rbacv1.PolicyRule
		for _, p := range role.Policies {
			rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{p.Group}, Resources: []string{p.Resource}, ResourceNames: p.Names, Verbs: p.Verbs})
		}
		user.AllowIn(t, role.Namespace, rules...)
	}
	policies := map[string]*cluster.Objects{
		"ValidatingAdmissionPolicy":        plane.Objects("validatingadmissionpolicies.v1.admissionregistration.k8s.io", ""),
		"ValidatingAdmissionPolicyBinding": plane.Objects("validatingadmissionpolicybindings.v1.admissionregistration.k8s.io", ""),
	}
	var all []*unstructured.Unstructured
	for _, o := range policy.Objects(op, ns) {
		all = append(all, policies[o.GetKind()].Create(t, o))
	}
	proxy := cluster.NewProxy(t, user.Config())
	running := cluster.Run(t, op, engine.Settings{Config: proxy.Config(), Namespace: ns})
	running.AwaitReady(t)
	await(t, "the policy of others refuses", func() bool { return strings.Contains(made(t, "configmaps", "ConfigMap", ns), "no x") })
	for _, o := range all {
		policies[o.GetKind()].Delete(t, o.GetName())
	}
	await(t, "nothing refuses", func() bool { return made(t, "configmaps", "ConfigMap", ns) == "" })
	plane.Objects("limitranges.v1", ns).Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "LimitRange", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"limits": []any{}},
	}})
	running.Await(t, "seen a")
	for _, r := range proxy.Requests(cluster.On("*", "*")) {
		if strings.Contains(r.URI, "admissionregistration.k8s.io") && r.Verb != "get" { // discovery gets
			t.Errorf("it sent %s %s", r.Verb, r.URI)
		}
	}
}
