// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"net/http/httptest"
	"regexp"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/sandbox/server"
)

// TestTree compares what a person sees of a tree, who may not read Secrets.
func TestTree(t *testing.T) {
	cluster := server.New(server.Settings{})
	front := httptest.NewServer(cluster.Client(nil, nil))
	t.Cleanup(front.Close)
	client, err := dynamic.NewForConfig(&rest.Config{Host: front.URL})
	if err != nil {
		t.Fatal(err)
	}
	create := func(version schema.GroupVersionResource, kind, name string, replicas int64, owner *unstructured.Unstructured) *unstructured.Unstructured {
		t.Helper()
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version.GroupVersion().String(), "kind": kind, "spec": map[string]any{"replicas": replicas}}}
		o.SetName(name)
		if owner != nil {
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID()}})
		}
		made, err := client.Resource(version).Namespace("default").Create(t.Context(), o, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	root := create(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "ConfigMap", "home", 0, nil)
	web := create(apps.WithResource("deployments"), "Deployment", "web", 2, root)
	create(apps.WithResource("replicasets"), "ReplicaSet", "web-1", 0, web)
	create(apps.WithResource("replicasets"), "ReplicaSet", "web-2", 0, web)
	create(apps.WithResource("statefulsets"), "StatefulSet", "db", 0, root)
	cluster.Forbid(server.Rule{Verb: "list", Resource: schema.GroupResource{Resource: "secrets"}})
	kubeconfig := writeFile(t, "kubeconfig", kubeconfigOf(front.URL))
	for name, args := range map[string][]string{"tree": {"tree", "cm/home"}, "tree-of-none": {"tree", "cm/nope"}, "tree-of-no-kind": {"tree", "nopes/a"}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			code := b.execute(t.Context(), append(args, "--kubeconfig", kubeconfig))
			compareGolden(t, name, fmt.Sprintf("-- exit %d --\n-- stdout --\n%s-- stderr --\n%s", code, ages.ReplaceAllString(b.out.String(), "AGE "), b.err.String()))
		})
	}
}

// ages are the ages of objects that a test has made, in seconds.
var ages = regexp.MustCompile(`\b[0-9]+s *`)
