// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/cmd"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
)

// TestAnOperatorIsConfined holds what the policy of operator bundle --confine lets the operator's account write, which has
// all rights here. The API server in memory refuses the same.
func TestAnOperatorIsConfined(t *testing.T) {
	t.Parallel()
	t.Run("in a cluster", func(t *testing.T) {
		t.Parallel()
		isConfined(t, plane.Config(), plane.Namespace(t), plane.Namespace(t), plane.Namespace(t))
	})
	t.Run("in memory", func(t *testing.T) {
		t.Parallel()
		config := &rest.Config{Host: "http://memory", Transport: server.New(complete.Settings()).Admin(), QPS: -1}
		objects := dynamic.NewForConfigOrDie(config)
		for _, name := range []string{"home", "inside", "outside"} {
			createGlobal(t, objects, "namespaces.v1", core("Namespace", name))
		}
		text, err := os.ReadFile("../../samples/webapp/crd.yaml")
		if err != nil {
			t.Fatal(err)
		}
		crds, err := cluster.Parse(string(text))
		if err != nil {
			t.Fatal(err)
		}
		createGlobal(t, objects, "customresourcedefinitions.v1.apiextensions.k8s.io", crds[0])
		isConfined(t, config, "home", "inside", "outside")
	})
}

// createGlobal creates an object that is not in a namespace.
func createGlobal(t *testing.T, in dynamic.Interface, resource string, o *unstructured.Unstructured) {
	t.Helper()
	if _, err := in.Resource(plane.Objects(resource, "").Name).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// isConfined confines an operator in one of three namespaces, and tries what its account may write.
func isConfined(t *testing.T, config *rest.Config, home, inside, outside string) {
	t.Helper()
	others := dynamic.NewForConfigOrDie(config)
	confine(t, others, home, "namespace name matches preview-*,"+inside[:len(inside)-1]+"?")
	config = rest.CopyConfig(config)
	config.Impersonate.UserName, config.Impersonate.Groups = "system:serviceaccount:"+home+":handwerk-webapp", []string{"system:masters"}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	spaces, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	try := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	configMap := func(namespace, name string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := spaces.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, try)
			return err
		}
	}
	namespace := func(meta metav1.ObjectMeta) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := spaces.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: meta}, try)
			return err
		}
	}
	object := func(resource, namespace string, object map[string]any) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := objects.Resource(plane.Objects(resource, "").Name).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: object}, try)
			return err
		}
	}
	waitFor(t, "the policy to be in force", func() bool { return apierrors.IsForbidden(configMap(outside, "one")(t.Context())) })

	tests := map[string]struct {
		do      func(context.Context) error
		refused bool
	}{
		"an object in a namespace that the rule names":    {configMap(inside, "one"), false},
		"an object in another namespace":                  {configMap(outside, "one"), true},
		"an object in the operator's own namespace":       {configMap(home, "one"), true},
		"the record of its children":                      {configMap(home, "webapp-children"), false},
		"the record of its children in another namespace": {configMap(outside, "webapp-children"), true},
		"a namespace that the rule names":                 {namespace(metav1.ObjectMeta{Name: "preview-7"}), false},
		"another namespace":                               {namespace(metav1.ObjectMeta{Name: "production"}), true},
		"a namespace whose name the API server makes":     {namespace(metav1.ObjectMeta{GenerateName: "prod-"}), true},
		"the deletion of a namespace that it does not name": {func(ctx context.Context) error {
			return spaces.CoreV1().Namespaces().Delete(ctx, outside, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		}, true},
		"the deletion of all objects in another namespace": {func(ctx context.Context) error {
			return spaces.CoreV1().ConfigMaps(outside).DeleteCollection(ctx, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, metav1.ListOptions{})
		}, true},
		"an object without a namespace": {object("clusterroles.v1.rbac.authorization.k8s.io", "", map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "preview"},
		}), false},
		"its own resource anywhere": {object("webapps.v1alpha1.samples.handwerk.dev", outside, map[string]any{
			"apiVersion": "samples.handwerk.dev/v1alpha1", "kind": "WebApp", "metadata": map[string]any{"name": "one"}, "spec": map[string]any{"image": "nginx"},
		}), false},
		"an Event anywhere": {func(ctx context.Context) error {
			_, err := spaces.CoreV1().Events(outside).Create(ctx, &corev1.Event{
				ObjectMeta: metav1.ObjectMeta{Name: "one"}, InvolvedObject: corev1.ObjectReference{Kind: "ConfigMap", Name: "one", Namespace: outside},
			}, try)
			return err
		}, false},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			if err := tt.do(t.Context()); apierrors.IsForbidden(err) != tt.refused || err != nil && !tt.refused {
				t.Errorf("the answer is %v, want that it is refused: %v", err, tt.refused)
			}
		})
	}
	if _, err := others.Resource(plane.Objects("configmaps.v1", "").Name).Namespace(outside).Create(t.Context(), core("ConfigMap", "one"), try); err != nil {
		t.Errorf("another account is bound, too: %v", err)
	}
}

// confine applies the policy and the binding of a bundle.
func confine(t *testing.T, in dynamic.Interface, namespace, rule string) {
	t.Helper()
	var out, faults bytes.Buffer
	args := []string{"bundle", "--config=../../samples/webapp", "--namespace=" + namespace, "--confine=" + rule}
	if code := cmd.Run(t.Context(), args, cmd.Streams{Out: &out, Err: &faults}, handlers.Standard()); code != 0 {
		t.Fatal(faults.String())
	}
	all, err := cluster.Parse(out.String())
	if err != nil {
		t.Fatal(err)
	}
	resources := map[string]string{
		"ValidatingAdmissionPolicy": "validatingadmissionpolicies.v1.admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings.v1.admissionregistration.k8s.io",
	}
	for _, o := range all {
		if resource := resources[o.GetKind()]; resource != "" {
			createGlobal(t, in, resource, o)
			t.Cleanup(func() {
				of := in.Resource(plane.Objects(resource, "").Name)
				if err := of.Delete(context.WithoutCancel(t.Context()), o.GetName(), metav1.DeleteOptions{}); err != nil {
					t.Error(err)
				}
			})
			delete(resources, o.GetKind())
		}
	}
	if len(resources) > 0 {
		t.Fatalf("the bundle lacks %v", resources)
	}
}
