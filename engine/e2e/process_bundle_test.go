// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/cmd"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/handlers"
)

// TestABundleIsAdmitted holds that the API server takes each object of a bundle without a word, and that the Pod Security Standard
// restricted admits the Pods of its Deployment.
func TestABundleIsAdmitted(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	plane.Objects("namespaces.v1", "").Patch(t, ns, `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`)
	var out, faults bytes.Buffer
	args := []string{"bundle", "--config=../../samples/webapp", "--namespace=" + ns}
	if code := cmd.Run(t.Context(), args, cmd.Streams{Out: &out, Err: &faults}, handlers.Standard()); code != 0 {
		t.Fatal(faults.String())
	}
	objects, err := cluster.Parse(out.String())
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, o := range objects {
		kinds[o.GetKind()] = true
		if o.GetKind() == "ServiceAccount" {
			plane.Objects("serviceaccounts.v1", ns).Create(t, o)
			continue
		}
		tryToCreate(t, o)
		if o.GetKind() == "Deployment" {
			tryToCreate(t, podOf(t, o))
		}
	}
	for _, kind := range []string{"CustomResourceDefinition", "ClusterRole", "Role", "RoleBinding", "ConfigMap", "Deployment", "PodDisruptionBudget", "Service", "NetworkPolicy"} {
		if !kinds[kind] {
			t.Errorf("the bundle has no %s", kind)
		}
	}
}

// tryToCreate has the API server say whether it would take an object with no field that it does not know.
func tryToCreate(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	resource, group := strings.ToLower(o.GetKind())+"s", o.GroupVersionKind().Group
	if o.GetKind() == "NetworkPolicy" {
		resource = "networkpolicies"
	}
	gvr := o.GroupVersionKind().GroupVersion().WithResource(resource)
	_, err := plane.Dynamic().Resource(gvr).Namespace(o.GetNamespace()).Create(t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	if err != nil && !strings.Contains(err.Error(), "already exists") {
		t.Errorf("%s %s of %q: %v", o.GetKind(), o.GetName(), group, err)
	}
}

// podOf returns a Pod as the Deployment makes it.
func podOf(t *testing.T, deployment *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	template, found, err := unstructured.NestedMap(deployment.Object, "spec", "template")
	if !found || err != nil {
		t.Fatal(fmt.Errorf("the Deployment has no template: %w", err))
	}
	pod := &unstructured.Unstructured{Object: template}
	pod.SetAPIVersion("v1")
	pod.SetKind("Pod")
	pod.SetNamespace(deployment.GetNamespace())
	pod.SetName(deployment.GetName())
	return pod
}
