// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine/cluster/policy"
	"github.com/handwerk-dev/handwerk/handlers"
)

var update = flag.Bool("update", false, "write the expected objects anew")

// guard returns an operator with a text after its metadata.
func guard(t *testing.T, text string) *dsl.Operator {
	t.Helper()
	op, err := config.Parse("x.yaml", []byte("apiVersion: handwerk.dev/v1alpha1\nkind: Operator\nmetadata: {name: guard}\n"+text), handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	return op
}

func TestPoliciesAndWebhooksOfRules(t *testing.T) {
	op := guard(t, `
scope: {namespaces: [team-*, "!team-old", "!*-test"]}
admission:
- resource: pods.v1
  selector: {matchLabels: {app: web}}
  namespaceSelector: {matchLabels: {team: a}}
  validate:
  - {id: image, rule: "self.spec.containers.size() > 0", operations: [delete], subresources: [ephemeralcontainers], failurePolicy: Ignore, action: audit, reason: Forbidden, message: m}
  mutate:
  - {id: label, when: params.data.on == 'x', params: {apiVersion: v1, kind: ConfigMap, name: limits, namespace: ops, optional: true}, set: {labels: {a: "${params.data.a}"}}}
  - {id: slow, enforce: webhook, timeout: 2s, set: {labels: {a: b}}}
`)
	var got []string
	objects := append(policy.Objects(op, "ops"), policy.Webhooks(op, "ops", policy.Client{Namespace: "ops", Service: "guard-webhook", Authorities: []byte("ca")})...)
	for _, o := range objects {
		got = append(got, text(t, o))
	}
	if *update {
		if err := os.WriteFile("testdata/rules.yaml", []byte(strings.Join(got, "\n---\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	wanted, err := os.ReadFile("testdata/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(strings.TrimSpace(string(wanted)), "\n---\n"), got); diff != "" {
		t.Errorf("objects; if these are better, run this test with -update (-want +got):\n%s", diff)
	}
}

func text(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	out, err := yaml.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// TestRulesAboutBuiltInKindsLeaveTheOperatorAlone holds that no rule can keep the operator or the cluster from starting.
func TestRulesAboutBuiltInKindsLeaveTheOperatorAlone(t *testing.T) {
	for _, tc := range []struct{ name, text, resource, want string }{
		{"a built-in kind", "", "pods.v1", "kubernetes.io/metadata.name notin (kube-system,ops)"},
		{"a custom kind", "", "foos.v1.example.com", ""},
		{"a scope that names the namespace", "scope: {namespaces: [ops, shop]}\n", "pods.v1", "kubernetes.io/metadata.name in (ops,shop),kubernetes.io/metadata.name notin (kube-system)"},
		{"a scope by labels", "scope: {namespaceSelector: {matchLabels: {a: b}}}\n", "foos.v1.example.com", "a=b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			op := guard(t, fmt.Sprintf("%sadmission: [{resource: %s, validate: [{id: a, rule: 'true'}]}]\n", tc.text, tc.resource))
			got := metaText(policy.Namespaces(op, "ops", op.Resources()[0]))
			if got != tc.want {
				t.Errorf("the selector is %q, want %q", got, tc.want)
			}
		})
	}
}

// TestAllSelectorsOfNamespacesHold holds that a rule is about no namespace that the scope excludes, also if both name one label, in
// policies and webhooks. An API server that reads a part of the selectors would let a rule decide elsewhere.
func TestAllSelectorsOfNamespacesHold(t *testing.T) {
	for _, tc := range []struct{ name, scope, rule, want string }{
		{"two values of one label", "team=a", "team=b", "team=a,team in (b)"},
		{"one value twice", "team=a", "team==a", "team=a,team in (a)"},
		{"another value", "team!=a", "team in (a,b)", "team notin (a),team in (a,b)"},
		{"two labels", "team=a", "!paused", "!paused,team=a"},
		{"the scope alone", "team,team!=a", "", "team,team notin (a)"},
		{"the rule alone", "", "team=a", "team=a"},
	} {
		for _, enforce := range []string{"policy", "webhook"} {
			t.Run(tc.name+" in a "+enforce, func(t *testing.T) {
				op := guard(t, "admission: [{resource: foos.v1.example.com, validate: [{id: a, enforce: "+enforce+", rule: 'true'}]}]\n")
				op.Scope.NamespaceSelector, op.Resources()[0].NamespaceSelector, op.Resources()[0].LabelSelector = tc.scope, tc.rule, strings.Trim(tc.scope+","+tc.rule, ",")
				var got []string
				for _, o := range append(policy.Objects(op, "ops"), policy.Webhooks(op, "ops", policy.Client{})...) {
					got = append(got, selectors(t, o.Object)...)
				}
				if diff := cmp.Diff([]string{tc.want, tc.want}, got); diff != "" {
					t.Errorf("the selectors of namespaces and objects (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// selectors returns all selectors of a tree in kubectl's form.
func selectors(t *testing.T, tree any) (out []string) {
	switch tree := tree.(type) {
	case []any:
		for _, each := range tree {
			out = append(out, selectors(t, each)...)
		}
	case map[string]any:
		for key, value := range tree {
			if key != "namespaceSelector" && key != "objectSelector" {
				out = append(out, selectors(t, value)...)
				continue
			}
			selector := &metav1.LabelSelector{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(value.(map[string]any), selector); err != nil {
				t.Fatal(err)
			}
			out = append(out, metaText(selector))
		}
	}
	return out
}

// TestFieldsSelectBeforeAndAfterAChange holds that a change of a field does not lead around a rule, nor a flag that is not set.
func TestFieldsSelectBeforeAndAfterAChange(t *testing.T) {
	for _, tc := range []struct{ fields, want string }{
		{"type!=a", `object != null && string(object.?type.orValue('')) != "a" || oldObject != null && string(oldObject.?type.orValue('')) != "a"`},
		{"spec.on=false", `object != null && string(object.?spec.?on.orValue(false)) == "false" || oldObject != null && string(oldObject.?spec.?on.orValue(false)) == "false"`},
	} {
		op := guard(t, fmt.Sprintf("resources: [{resource: pods.v1, selector: {fields: %q}, validate: [{id: a, rule: 'true', operations: [delete]}]}]\n", tc.fields))
		r := op.Resources()[0]
		if diff := cmp.Diff([]string{tc.want}, policy.Conditions(op, r, r.Admissions()[0].Admission)); diff != "" {
			t.Errorf("%s: conditions (-want +got):\n%s", tc.fields, diff)
		}
	}
}

// metaText returns a selector in kubectl's form; empty if it selects everything.
func metaText(s *metav1.LabelSelector) string {
	return strings.TrimPrefix(metav1.FormatLabelSelector(s), "<none>")
}

// TestNamesOfTwoOperatorsDiffer holds that tenants do not share policies.
func TestNamesOfTwoOperatorsDiffer(t *testing.T) {
	op := guard(t, "admission: [{resource: pods.v1, validate: [{id: A, rule: 'true'}]}]\n")
	r := op.Resources()[0]
	got := []string{policy.Name(op, "a", r, r.Admissions()[0]), policy.Name(op, "b", r, r.Admissions()[0])}
	want := []string{"a.pods.core.guard.a.handwerk.dev", "a.pods.core.guard.b.handwerk.dev"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	long := strings.Repeat("x", 63)
	one, other := policy.Label(op, long+"a"), policy.Label(op, long+"b")
	if len(one) > 63 || one == other {
		t.Errorf("labels of long namespaces are %q and %q", one, other)
	}
}
