// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/cluster/registration"
	"github.com/handwerk-dev/handwerk/engine/cluster/webhook"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// TestObjectsArePutBack holds that webhooks and policies come back after an edit and after a deletion, with one write each.
func TestObjectsArePutBack(t *testing.T) {
	t.Parallel()
	policy := func(o *operator) *unstructured.Unstructured {
		objects, err := cluster.Parse(fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: p-%s}, spec: {
			matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}, validations: [{expression: "true"}]}}`, o.namespace))
		if err != nil {
			t.Fatal(err)
		}
		registration.ExceptNamespaces(objects[0], "kube-system")
		return objects[0]
	}
	o := start(t, 1, webhook.Options{Reviews: map[string]webhook.Review{"/validate": byName}}, 0,
		func(o *operator, bundle string) []*unstructured.Unstructured {
			return []*unstructured.Unstructured{
				o.configuration("ValidatingWebhookConfiguration", "v", bundle, hook{"v", o.replicas[0].url("/validate"), "Fail", 5}), policy(o),
			}
		})
	mark := plane.Mark(t)
	for _, object := range o.configure("") {
		plural := strings.ToLower(strings.TrimSuffix(object.GetKind(), "y")) + "s"
		if object.GetKind() == "ValidatingAdmissionPolicy" {
			plural = "validatingadmissionpolicies"
		}
		objects, name := plane.Objects(plural+".v1.admissionregistration.k8s.io", ""), object.GetName()
		before := objects.Get(t, name)
		edit := `{"webhooks": []}`
		if before.GetKind() == "ValidatingAdmissionPolicy" {
			edit = `{"spec": {"validations": [{"expression": "false"}]}}`
		}
		edited := objects.Patch(t, name, edit)
		objects.Await(t, name, "the end of the edit", func(now *unstructured.Unstructured) bool { return now.GetGeneration() > edited.GetGeneration() })
		objects.Delete(t, name)
		objects.Await(t, name, "its return", func(now *unstructured.Unstructured) bool { return now.GetUID() != before.GetUID() })
	}
	if _, err := o.create(t.Context(), plane.Dynamic(), "ready"); err != nil {
		t.Error(err)
	}
	ours := 0
	for _, w := range plane.Writes(t, "", mark) {
		if strings.HasSuffix(w.Name, o.namespace) && w.Verb == "patch" && strings.Contains(w.URI, "fieldManager=webhooks") {
			ours++
		}
	}
	if ours != 4 {
		t.Errorf("%d writes for two edits and two deletions:\n%v", ours, plane.Writes(t, "", mark))
	}
}

// TestObjectsAreConvertedBothWays holds conversions of an object, of a list, and of a status, between two versions of a CRD.
func TestObjectsAreConvertedBothWays(t *testing.T) {
	t.Parallel()
	const crd = "ports.e2e-admission.example.com"
	convert := func(_ context.Context, o *unstructured.Unstructured, to string) (*unstructured.Unstructured, error) {
		from, field := "port", "ports"
		if strings.HasSuffix(to, "/v1") {
			from, field = field, from
		}
		value, found, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", from)
		if list, is := value.([]any); is {
			if len(list) != 1 {
				return nil, fmt.Errorf("v1 has one port, not %d", len(list))
			}
			value = list[0]
		} else {
			value = []any{value}
		}
		if o.SetAPIVersion(to); found {
			o.Object["spec"] = map[string]any{field: value}
		}
		return o, nil
	}
	version := func(name, schema string, storage bool) string {
		return fmt.Sprintf(`{name: %s, served: true, storage: %t, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, properties: {
			spec: {type: object, properties: {%s}}, status: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}`, name, storage, schema)
	}
	plane.Apply(t, "", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: `+crd+`}, spec: {group: e2e-admission.example.com, scope: Namespaced,
		names: {plural: ports, singular: port, kind: Port, listKind: PortList}, versions: [
		`+version("v1", "port: {type: integer}", false)+`,
		`+version("v2", "ports: {type: array, items: {type: integer}}", true)+`]}}`+"\n")
	o := start(t, 1, webhook.Options{Conversions: map[string]webhook.Convert{"/convert": convert}}, 0,
		func(o *operator, bundle string) []*unstructured.Unstructured {
			return []*unstructured.Unstructured{registration.Conversion(crd, map[string]any{"url": o.replicas[0].url("/convert"), "caBundle": bundle})}
		})
	t.Cleanup(func() { plane.Objects("customresourcedefinitions.v1.apiextensions.k8s.io", "").Delete(t, crd) }) // before its server ends
	v1, v2 := plane.Objects("ports.v1.e2e-admission.example.com", o.namespace), plane.Objects("ports.v2.e2e-admission.example.com", o.namespace)
	made := func(version, spec string) *unstructured.Unstructured {
		objects, err := cluster.Parse(fmt.Sprintf("{apiVersion: e2e-admission.example.com/%s, kind: Port, metadata: {name: of-%s, labels: {a: b}}, spec: {%s}}", version, version, spec))
		if err != nil {
			t.Fatal(err)
		}
		return objects[0]
	}
	// The API server learns of the conversion by watching the CRD, and gives no sign.
	o.awaitConversion(t, made("v1", "port: 1"))
	v1.Create(t, made("v1", "port: 80"))
	v2.Create(t, made("v2", "ports: [443]"))
	spec := func(o *unstructured.Unstructured) string { return fmt.Sprint(o.Object["spec"], o.GetLabels()) }
	for name, tt := range map[string]struct{ got, want string }{
		"a v1 object as v2": {spec(v2.Get(t, "of-v1")), "map[ports:[80]] map[a:b]"},
		"a v2 object as v1": {spec(v1.Get(t, "of-v2")), "map[port:443] map[a:b]"},
		"a v1 object as v1": {spec(v1.Get(t, "of-v1")), "map[port:80] map[a:b]"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %s, want %s", name, tt.got, tt.want)
		}
	}
	if list := v1.List(t); len(list) != 2 || spec(&list[0]) != "map[port:80] map[a:b]" {
		t.Errorf("the list as v1: %v", list)
	}
	v1.Patch(t, "of-v2", `{"status": {"ready": true}}`, "status")
	if v2.Get(t, "of-v2").Object["status"] == nil {
		t.Error("the status is lost")
	}
	v2.Patch(t, "of-v2", `{"spec": {"ports": [1, 2]}}`)
	_, err := plane.Dynamic().Resource(v1.Name).Namespace(o.namespace).Get(t.Context(), "of-v2", metav1.GetOptions{})
	if err == nil || !strings.Contains(err.Error(), "v1 has one port, not 2") {
		t.Errorf("what cannot be converted: %v", err)
	}
	v2.Patch(t, "of-v2", `{"spec": {"ports": [1]}}`)
}

// awaitConversion returns when the API server has an object converted.
func (o *operator) awaitConversion(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	client := plane.Dynamic().Resource(plane.Objects("ports.v1.e2e-admission.example.com", "").Name).Namespace(o.namespace)
	deadline := time.After(cluster.Patience)
	for o.replicas[0].counts.of("/convert", webhook.Converted) == 0 {
		_, _ = client.Create(t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}) // the answer says nothing
		select {
		case <-time.After(10 * time.Millisecond):
		case <-deadline:
			t.Fatal("the API server does not call the conversion")
		}
	}
}
