// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/sandbox"
)

// TestRulesAreInForceWhenTheChecksPass holds that the checks are not ok before the first policies and webhooks are applied.
func TestRulesAreInForceWhenTheChecksPass(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"policy", "webhook"} {
		t.Run(by, func(t *testing.T) {
			to := sandbox.New(t, sandbox.Options{}).Config()
			client := dynamic.NewForConfigOrDie(to)
			namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "ops"}}}
			if _, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			op, err := config.Parse("op.yaml", []byte(`{apiVersion: handwerk.dev/v1alpha1, kind: Operator, metadata: {name: guard},
				admission: [{resource: configmaps.v1, validate: [{id: none, rule: "false", message: no maps, enforce: `+by+`}]}]}`), handlers.Standard())
			if err != nil {
				t.Fatal(err)
			}
			awaitRules(t, startEngine(t, op, to))
			o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}}
			_, err = client.Resource(configMaps).Namespace("default").Create(t.Context(), o, metav1.CreateOptions{})
			if err == nil || !strings.Contains(err.Error(), "no maps") {
				t.Errorf("a ConfigMap is created with %v, while the checks pass", err)
			}
		})
	}
}
