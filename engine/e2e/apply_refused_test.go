// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

const asSecret = `
another:
  apiVersion: v1
  kind: Secret
  metadata: {name: "${self.metadata.name}-another"}
  stringData: {value: "${self.spec.value}"}
`

// another is a child that the API server has something against.
const another = `
another:
  apiVersion: v1
  kind: ConfigMap
  metadata: {name: "${self.metadata.name}-another"}
  data: {value: "${self.spec.value}"}
`

// policyOfNamespace denies ConfigMaps whose names end in -another.
const policyOfNamespace = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NS}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]
  matchConditions: [{name: of-the-test, expression: "object.metadata.name.endsWith('-another')"}]
  validations: [{expression: "false", message: ask the platform team for a permit}]
`

// bindingOfNamespace binds a policy to the namespace whose name it has.
const bindingOfNamespace = `---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NS}
spec:
  policyName: NS
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}}
`

// inForce puts a policy of the name NS in force in a namespace until the test has ended; denies reports whether
// they are.
func inForce(t *testing.T, ns, policy string, denies func() bool) {
	t.Helper()
	plane.Apply(t, "", strings.ReplaceAll(policy+bindingOfNamespace, "NS", ns))
	t.Cleanup(func() {
		ctx, admission := context.WithoutCancel(t.Context()), plane.Kubernetes().AdmissionregistrationV1()
		_ = admission.ValidatingAdmissionPolicyBindings().Delete(ctx, ns, metav1.DeleteOptions{}) // it may have gone before
		if err := admission.ValidatingAdmissionPolicies().Delete(ctx, ns, metav1.DeleteOptions{}); err != nil {
			t.Errorf("deleting the policy: %v", err)
		}
	})
	waitFor(t, "the policy to be in force", denies)
}

// deny puts the policy in force in a namespace, and returns what ends it.
func deny(t *testing.T, ns string) func(*testing.T) {
	t.Helper()
	inForce(t, ns, policyOfNamespace, func() bool {
		_, err := plane.Kubernetes().CoreV1().ConfigMaps(ns).Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "probe-another"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil
	})
	return func(t *testing.T) {
		t.Helper()
		if err := plane.Kubernetes().AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestApplyIsRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		children string
		rules    []rbacv1.PolicyRule
		// trouble makes the trouble before the work is there.
		trouble func(t *testing.T, s *applyStage) trouble
	}{
		"by an admission policy": {another, nil, func(t *testing.T, s *applyStage) trouble {
			return trouble{"Denied", []string{"w-another", "ask the platform team for a permit"}, deny(t, s.ns)}
		}},
		"by a quota": {strings.Replace(another, "self.spec.value", "children.beside.metadata.name", 1), nil, func(t *testing.T, s *applyStage) trouble {
			// The namespace's own ConfigMap and the one beside, which comes first, fill it.
			s.maps.Await(t, "kube-root-ca.crt", "being made", func(*unstructured.Unstructured) bool { return true })
			quotas := plane.Objects("resourcequotas.v1", s.ns)
			plane.Apply(t, s.ns, "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: few}\nspec: {hard: {count/configmaps: \"2\"}}")
			quotas.Await(t, "few", "being counted", func(o *unstructured.Unstructured) bool { return field(o, "status", "used", "count/configmaps") == "1" })
			return trouble{"QuotaExceeded", []string{"few", "count/configmaps", "raise the quota"}, func(t *testing.T) {
				quotas.Patch(t, "few", `{"spec":{"hard":{"count/configmaps":"3"}}}`)
			}}
		}},
		"for want of a right to write": {
			asSecret,
			[]rbacv1.PolicyRule{cluster.Rule("", "secrets", "get", "list", "watch")},
			func(_ *testing.T, s *applyStage) trouble {
				return trouble{"Forbidden", []string{"Secret", "w-another", "cannot patch resource \"secrets\"", "allow it to the operator"}, func(t *testing.T) {
					s.user.AllowIn(t, s.ns, cluster.Rule("", "secrets", "patch", "create"))
				}}
			},
		},
		"for want of a right to look": {
			asSecret + "third: {apiVersion: v1, kind: ConfigMap, metadata: {name: \"${children.beside.metadata.name}-too\"}}\n", nil,
			func(t *testing.T, s *applyStage) trouble {
				return trouble{"Forbidden", []string{"Secret", "secrets", "list, watch", "allow it to the operator"}, func(t *testing.T) {
					s.maps.Await(t, "w-beside-too", "being made", func(*unstructured.Unstructured) bool { return true })
					s.user.AllowIn(t, s.ns, made("", "secrets"))
				}}
			},
		},
		"for an invalid value": {
			"another: {apiVersion: v1, kind: Service, metadata: {name: \"${self.metadata.name}-another\"}, spec: {ports: [{port: \"${int(self.spec.?port.orValue(70000))}\"}]}}",
			[]rbacv1.PolicyRule{made("", "services")},
			func(_ *testing.T, s *applyStage) trouble {
				return trouble{"Invalid", []string{"Service", "w-another", "spec.ports[0].port", "70000"}, func(t *testing.T) {
					s.works.Patch(t, "w", `{"spec":{"port":80}}`)
				}}
			},
		},
		"for a field that the kind does not have": {
			"another: {apiVersion: v1, kind: ConfigMap, metadata: {name: \"${self.metadata.name}-another\"}, dada: \"${self.spec.?dada}\"}",
			nil,
			func(_ *testing.T, s *applyStage) trouble {
				return trouble{"Invalid", []string{"ConfigMap", "w-another", ".dada: field not declared in schema"}, func(t *testing.T) {
					s.works.Patch(t, "w", `{"spec":{"dada":null}}`)
				}}
			},
		},
		"for a value of another type": {
			"another: {apiVersion: v1, kind: ConfigMap, metadata: {name: \"${self.metadata.name}-another\"}, immutable: \"${self.spec.?dada.orValue(false)}\"}",
			nil,
			func(_ *testing.T, s *applyStage) trouble {
				return trouble{"Invalid", []string{"ConfigMap", "w-another", ".immutable"}, func(t *testing.T) {
					s.works.Patch(t, "w", `{"spec":{"dada":true}}`)
				}}
			},
		},
		"because another object owns it": {another, nil, func(t *testing.T, s *applyStage) trouble {
			owner := s.works.Create(t, work("holder", "a"))
			held := &unstructured.Unstructured{Object: configMap("w-another", "theirs")}
			held.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
			s.maps.Create(t, held)
			return trouble{"NotOwned", []string{"ConfigMap", "w-another", "belongs to Work holder", "another name"}, func(t *testing.T) {
				if got := dataValue(s.maps.Get(t, "w-another")); got != "theirs" {
					t.Errorf("it was changed to %q", got)
				}
				s.maps.Delete(t, "w-another")
			}}
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newApplyStage(t, nil, append(test.rules, made("", "configmaps"))...)
			of := test.trouble(t, s)
			s.run(t, beside+test.children)
			w := work("w", "a")
			if strings.Contains(test.children, "dada") {
				w.Object["spec"].(map[string]any)["dada"] = "x"
			}
			s.works.Create(t, w)
			s.endsWell(t, "w", of)
		})
	}
}
