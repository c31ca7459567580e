// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestConversionsOfCRDsAreKept holds that the conversion follows the CRD, and nothing else of it changes.
func TestConversionsOfCRDsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t)
		conversion := Conversion("foos.example.com", map[string]any{"url": "https://127.0.0.1:1/convert", "caBundle": oneBundle})
		s.wants(conversion)
		s.settled("the CRD does not exist")
		crd := parsed(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: foos.example.com}, spec: {group: example.com, scope: Namespaced,
			names: {plural: foos, singular: foo, kind: Foo, listKind: FooList}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`)
		if _, err := s.others.Resource(crds).Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		s.settled("")
		strategy := func() any {
			out, _, _ := unstructured.NestedString(s.get(crds, "foos.example.com").Object, "spec", "conversion", "strategy")
			return out
		}
		if strategy() != "Webhook" || len(s.get(crds, "foos.example.com").GetLabels()) != 0 {
			t.Error("the conversion was not applied, or more was")
		}
		s.patch(crds, "foos.example.com", `{"spec": {"conversion": {"strategy": "None", "webhook": null}}}`)
		if strategy() != "Webhook" {
			t.Error("the conversion was not put back")
		}
		s.wants(Conversion("foos.example.com", map[string]any{"service": map[string]any{"namespace": "op", "name": "hooks", "path": "/convert", "port": int64(443)}, "caBundle": oneBundle}))
		pass(time.Minute)
		s.settled("")
		client, _, _ := unstructured.NestedMap(s.get(crds, "foos.example.com").Object, "spec", "conversion", "webhook", "clientConfig")
		if _, has := client["url"]; has || client["service"] == nil {
			t.Errorf("the operator moved to a Service, and the CRD has %v", client)
		}
		s.wants()
		if strategy() != "Webhook" {
			t.Error("the conversion is gone")
		}
		if n := len(s.wrote()); n != 3 {
			t.Errorf("%d writes", n)
		}
		s.stop()
	})
}

func TestObjectsThatCannotBeKeptAreRefused(t *testing.T) {
	k, err := New(Settings{Manager: "op", Labels: map[string]string{"a": "b"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, objects := range map[string][]*unstructured.Unstructured{
		"another kind":          {parsed(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`)},
		"an unknown version":    {parsed(`{apiVersion: admissionregistration.k8s.io/v9, kind: ValidatingAdmissionPolicy, metadata: {name: a}}`)},
		"no name":               {parsed(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy}`)},
		"the same object twice": {policy("p"), policy("p")},
	} {
		t.Run(name, func(t *testing.T) {
			if err := k.Set(objects); err == nil || !strings.HasPrefix(err.Error(), "registering ") {
				t.Errorf("Set: %v", err)
			}
		})
	}
	if _, err := New(Settings{Manager: "op"}); err == nil {
		t.Error("a keeper needs no labels")
	}
}

func TestWebhooksLeaveOutTheOperatorsNamespace(t *testing.T) {
	selector := map[string]any{"matchExpressions": []any{map[string]any{
		"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": []any{"kube-system", "op"},
	}}}
	h, p := hooks("a", oneBundle), policy("p")
	for range 2 {
		ExceptNamespaces(h, "op", "kube-system", "op", "")
		ExceptNamespaces(p, "op", "kube-system")
	}
	if diff := cmp.Diff(selector, h.Object["webhooks"].([]any)[0].(map[string]any)["namespaceSelector"]); diff != "" {
		t.Errorf("the webhook (-want +got):\n%s", diff)
	}
	got, _, _ := unstructured.NestedMap(p.Object, "spec", "matchConstraints", "namespaceSelector")
	if diff := cmp.Diff(selector, got); diff != "" {
		t.Errorf("the policy (-want +got):\n%s", diff)
	}
	own := hooks("a", oneBundle)
	fields := own.Object["webhooks"].([]any)[0].(map[string]any)
	fields["namespaceSelector"] = map[string]any{"matchLabels": map[string]any{"a": "b"}}
	ExceptNamespaces(own, "op")
	if _, kept := fields["namespaceSelector"].(map[string]any)["matchLabels"]; !kept || len(fields["namespaceSelector"].(map[string]any)) != 2 {
		t.Errorf("the author's selector is %v", fields["namespaceSelector"])
	}
}
