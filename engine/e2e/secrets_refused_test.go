// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestRefusedDataIsExplained holds that the data of Secrets and ConfigMaps that the API server refuses is found before it is sent, and
// that what cannot be found before has a cause in words. Neither has a value, which begins with hush.
func TestRefusedDataIsExplained(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	type tree = map[string]any
	for name, tt := range map[string]struct {
		kind   string
		fields tree
		// sent: CheckData finds nothing, so the API server answers.
		sent bool
		want string
	}{
		"base64":                          {"Secret", tree{"data": tree{"a": "aHVzaA=="}}, true, ""},
		"base64 with a line break":        {"Secret", tree{"data": tree{"a": "aHVz\naA=="}}, true, ""},
		"nothing under a key":             {"Secret", tree{"data": tree{"a": nil}}, true, ""},
		"plain text in data":              {"Secret", tree{"data": tree{"a": "hush!"}}, false, "data.a is not base64"},
		"base64 without padding":          {"Secret", tree{"data": tree{"a": "aHVzaA"}}, false, "data.a is not base64"},
		"a number in stringData":          {"Secret", tree{"stringData": tree{"a": int64(1)}}, false, "stringData.a must be text"},
		"a key with a slash":              {"Secret", tree{"stringData": tree{"a/b": "hush"}}, false, `stringData["a/b"] is not a valid key`},
		"a key of two dots":               {"Secret", tree{"stringData": tree{"..": "hush"}}, false, `stringData[".."] is not a valid key`},
		"an empty key":                    {"Secret", tree{"stringData": tree{"": "hush"}}, false, "stringData"},
		"a list as data":                  {"Secret", tree{"data": []any{"hush"}}, false, "data must be a map"},
		"a number as a label":             {"Secret", tree{"metadata": tree{"labels": tree{"a": int64(1)}}}, false, "metadata.labels.a must be text"},
		"a number in a ConfigMap":         {"ConfigMap", tree{"data": tree{"a": int64(1)}}, false, "data.a must be text"},
		"plain text in binaryData":        {"ConfigMap", tree{"binaryData": tree{"a": "hush!"}}, false, "binaryData.a is not base64"},
		"plain text in a ConfigMap":       {"ConfigMap", tree{"data": tree{"a": "hush!"}}, true, ""},
		"a label that no label may be":    {"Secret", tree{"metadata": tree{"labels": tree{"a": "hush hush"}}}, true, "metadata.labels"},
		"a text where a boolean is meant": {"Secret", tree{"immutable": "hush"}, true, "a value in immutable has a wrong type"},
		"a field that Secrets lack":       {"Secret", tree{"hush": "hush"}, true, "is not in the schema"},
		"a TLS Secret without its keys":   {"Secret", tree{"type": "kubernetes.io/tls"}, true, "data[tls.crt], data[tls.key]"},
		"too much of it":                  {"Secret", tree{"stringData": tree{"a": strings.Repeat("hush", 300000)}}, true, "data"},
		"far too much of it":              {"Secret", tree{"stringData": tree{"a": strings.Repeat("hush", 1000000)}}, true, "too large"},
		"a namespace that is missing":     {"Secret", tree{"metadata": tree{"namespace": "gone"}}, true, "its namespace does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &unstructured.Unstructured{Object: tree{"apiVersion": "v1", "kind": tt.kind}}
			maps.Copy(o.Object, tt.fields)
			o.SetName("x")
			if o.GetNamespace() == "" {
				o.SetNamespace(ns)
			}
			found := dsl.CheckData(o, false)
			if sent := found == nil; sent != tt.sent {
				t.Errorf("CheckData says %v", found)
			}
			to := plane.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: strings.ToLower(tt.kind) + "s"}).Namespace(o.GetNamespace())
			_, answer := to.Apply(t.Context(), "x", o, metav1.ApplyOptions{FieldManager: "x", DryRun: []string{metav1.DryRunAll}})
			if (answer != nil) != (tt.want != "") {
				t.Errorf("the API server answers %v", answer)
			}
			text := ""
			if err := dsl.Withhold(answer, ""); err != nil {
				text = err.Error()
			}
			if found != nil {
				text = found.Error()
			}
			if !strings.Contains(text, tt.want) || strings.Contains(text, "hush") || strings.HasPrefix(text, "the API server answers") {
				t.Errorf("it says %q, want %q in it", text, tt.want)
			}
		})
	}
}
