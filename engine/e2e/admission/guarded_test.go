// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine/cluster/policy"
	"github.com/handwerk-dev/handwerk/engine/operate/cleanup"
	"github.com/handwerk-dev/handwerk/handlers"
)

// strict has rules that refuse all that an operator needs to start, in the namespaces that a test has labelled.
const strict = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: NAME}
settings: {leaderElection: {mode: lease}}
scope: {namespaceSelector: {matchLabels: {strict: NAME}}}
admission:
  - {resource: configmaps.v1, validate: [{id: configmap, rule: 'false', message: no ConfigMap, enforce: webhook}]}
  - {resource: secrets.v1, validate: [{id: secret, rule: 'false', message: no Secret, enforce: webhook}]}
  - {resource: leases.v1.coordination.k8s.io, validate: [{id: lease, rule: 'false', message: no Lease}]}
  - {resource: pods.v1, validate: [{id: pod, rule: 'false', message: no Pod}]}
`

// strictOperator returns the operator, and a namespace of its own and another one that its rules are about.
func strictOperator(t *testing.T) (op *dsl.Operator, own, other string) {
	t.Helper()
	own, other = plane.Namespace(t), plane.Namespace(t)
	name := "guard-" + own
	op, err := config.Parse("strict.yaml", []byte(strings.ReplaceAll(strict, "NAME", name)), handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	spaces := plane.Objects("namespaces.v1.", "")
	for _, space := range []string{own, other} {
		spaces.Patch(t, space, fmt.Sprintf(`{"metadata":{"labels":{"strict":%q}}}`, name))
	}
	return op, own, other
}

// made says what comes of creating an object of a core kind in a dry run.
func made(t *testing.T, resource, kind, namespace string) string {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "x", "namespace": namespace}}}
	if kind == "Pod" {
		o.Object["spec"] = map[string]any{"containers": []any{map[string]any{"name": "a", "image": "b"}}}
	}
	_, err := plane.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace(namespace).
		Create(t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return told(nil, err)
}

// TestAGuardedOperatorStartsAgain holds that no rule of an operator keeps it from starting, however strict and however long it was down.
func TestAGuardedOperatorStartsAgain(t *testing.T) {
	t.Parallel()
	op, own, other := strictOperator(t)
	run := func() (stop func()) {
		return background(t, func(ctx context.Context) { engineOf(ctx, t, op, plane.Config(), own) })
	}
	guarded := func(what string) {
		for resource, kind := range map[string]string{"configmaps": "ConfigMap", "secrets": "Secret", "pods": "Pod"} {
			await(t, kind+" is refused "+what, func() bool { return strings.Contains(made(t, resource, kind, other), "no "+kind) })
			if got := made(t, resource, kind, own); got != "" {
				t.Errorf("%s: a %s in the operator's own namespace: %s", what, kind, got)
			}
		}
	}
	stop := run()
	guarded("at first")
	stop()
	if got := made(t, "configmaps", "ConfigMap", other); !strings.Contains(got, "failed calling webhook") {
		t.Errorf("while the operator is down, a ConfigMap: %s", got)
	}
	if got := made(t, "pods", "Pod", other); !strings.Contains(got, "no Pod") {
		t.Errorf("while the operator is down, a Pod: %s", got)
	}
	plane.Objects("secrets.v1.", own).Delete(t, op.WebhookSecret())
	defer run()()
	guarded("after a restart without its certificate")
}

// TestAnObjectThatBreaksARuleCanGo holds that a newer rule holds up no deletion: finalizers go although the object breaks the rule.
func TestAnObjectThatBreaksARuleCanGo(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"policy", "webhook"} {
		own, other := plane.Namespace(t), plane.Namespace(t)
		maps := plane.Objects("configmaps.v1.", other)
		plane.Apply(t, other, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: old, finalizers: [example.com/mine]}\n")
		op, err := config.Parse("x.yaml", []byte(strings.NewReplacer("NAME", "gone-"+own, "BY", by, "OTHER", other).Replace(`
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: NAME}
scope: {namespaces: [OTHER]}
admission: [{resource: configmaps.v1, validate: [{id: no, rule: 'false', message: no ConfigMap, enforce: BY}]}]
`)), handlers.Standard())
		if err != nil {
			t.Fatal(err)
		}
		background(t, func(ctx context.Context) { engineOf(ctx, t, op, plane.Config(), own) })
		await(t, "a ConfigMap is refused by a "+by, func() bool { return strings.Contains(made(t, "configmaps", "ConfigMap", other), "no ConfigMap") })
		maps.Delete(t, "old")
		maps.Patch(t, "old", `{"metadata":{"finalizers":null}}`)
		maps.AwaitGone(t, "old")
	}
}

// TestCleanupRemovesRulesAboutRequests holds that an uninstall leaves nothing that refuses requests.
func TestCleanupRemovesRulesAboutRequests(t *testing.T) {
	t.Parallel()
	op, own, other := strictOperator(t)
	stop := background(t, func(ctx context.Context) { engineOf(ctx, t, op, plane.Config(), own) })
	await(t, "a ConfigMap is refused", func() bool { return strings.Contains(made(t, "configmaps", "ConfigMap", other), "no ConfigMap") })
	stop()
	c, err := cleanup.New(t.Context(), op, cleanup.Settings{Config: plane.Config(), Namespace: own})
	if err != nil {
		t.Fatal(err)
	}
	found := c.Look(t.Context())
	if failed := c.Remove(t.Context(), found, nil); len(failed) > 0 || len(found.Unseen) > 0 {
		t.Fatalf("cleaning: %v, unseen: %v", failed, found.Unseen)
	}
	for _, resource := range []string{"validatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings"} {
		list, err := listed(t, resource, op, own)
		if err != nil || len(list) > 0 {
			t.Errorf("%s are left: %v, %v", resource, list, err)
		}
	}
	await(t, "a ConfigMap is admitted", func() bool { return made(t, "configmaps", "ConfigMap", other) == "" })
}

// TestRulesThatAreGoneHoldNoMore holds that a new version of an operator deletes the objects of rules that it does not have, even if it has no
// rule at all, or another name. So does an uninstall by a later name.
func TestRulesThatAreGoneHoldNoMore(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, text string }{
		{"a version without rules", "metadata: {name: NAME}\nresources: [RESOURCE]"},
		{"a version of another name without rules", "metadata: {name: new-NAME, was: [NAME]}\nresources: [RESOURCE]"},
		{"a version of another name with another rule", "metadata: {name: new-NAME, was: [NAME]}\nadmission: [{resource: events.v1, validate: [{id: a, rule: 'true'}]}]"},
		{"an uninstall by another name", "metadata: {name: new-NAME, was: [NAME]}\nresources: [RESOURCE]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			op, own, other := strictOperator(t)
			text := strings.NewReplacer("NAME", op.Name, "RESOURCE", "{resource: limitranges.v1, handlers: [{id: a, log: {message: x}}]}").Replace(tc.text)
			next, err := config.Parse("next.yaml", []byte("apiVersion: handwerk.dev/v1alpha1\nkind: Operator\n"+text), handlers.Standard())
			if err != nil {
				t.Fatal(err)
			}
			next.Scope, next.Settings = op.Scope, op.Settings
			stop := background(t, func(ctx context.Context) { engineOf(ctx, t, op, plane.Config(), own) })
			await(t, "a ConfigMap is refused", func() bool { return strings.Contains(made(t, "configmaps", "ConfigMap", other), "no ConfigMap") })
			stop()
			if strings.HasPrefix(tc.name, "an uninstall") {
				c, err := cleanup.New(t.Context(), next, cleanup.Settings{Config: plane.Config(), Namespace: own})
				if err != nil {
					t.Fatal(err)
				}
				if failed := c.Remove(t.Context(), c.Look(t.Context()), nil); len(failed) > 0 {
					t.Fatalf("cleaning: %v", failed)
				}
			} else {
				background(t, func(ctx context.Context) { engineOf(ctx, t, next, plane.Config(), own) })
			}
			for _, resource := range []string{"validatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings"} {
				await(t, resource+" are gone", func() bool {
					list, err := listed(t, resource, op, own)
					return err == nil && len(list) == 0
				})
			}
		})
	}
}

// listed returns the names of an operator's objects for admission.
func listed(t *testing.T, resource string, op *dsl.Operator, namespace string) (names []string, err error) {
	t.Helper()
	list, err := plane.Dynamic().Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}).
		List(t.Context(), metav1.ListOptions{LabelSelector: policy.OperatorLabel + "=" + policy.Label(op, namespace)})
	if err != nil {
		return nil, err
	}
	for _, o := range list.Items {
		names = append(names, o.GetName())
	}
	return names, nil
}
