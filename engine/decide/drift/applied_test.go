// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestHolds holds when an apply by a field manager would change nothing.
func TestHolds(t *testing.T) {
	const labels = `{"f:metadata":{"f:labels":{"f:zone":{}}}}`
	account := func(fields, secrets string) [3]string {
		return [3]string{`{"imagePullSecrets":[{"name":"ours"}]}`, fields, `{"imagePullSecrets":[` + secrets + `]}`}
	}
	tests := map[string]struct {
		// of has what is desired, the manager's fields, and the object.
		of   [3]string
		want bool
	}{
		"a label that is there, among others": {[3]string{`{"metadata":{"labels":{"zone":"a"}}}`, labels, `{"metadata":{"labels":{"zone":"a","more":"b"}}}`}, true},
		"another value":                       {[3]string{`{"metadata":{"labels":{"zone":"b"}}}`, labels, `{"metadata":{"labels":{"zone":"a"}}}`}, false},
		"a label that is gone":                {[3]string{`{"metadata":{"labels":{"zone":"a"}}}`, labels, `{"metadata":{}}`}, false},
		"one that another manager has":        {[3]string{`{"metadata":{"labels":{"more":"b"}}}`, labels, `{"metadata":{"labels":{"zone":"a","more":"b"}}}`}, false},
		"less than before":                    {[3]string{`{"metadata":{"annotations":{"n":"x"}}}`, `{"f:metadata":{"f:annotations":{"f:n":{}},"f:labels":{"f:zone":{}}}}`, `{"metadata":{"labels":{"zone":"a"},"annotations":{"n":"x"}}}`}, false},
		"an entry of a list":                  {account(`{"f:imagePullSecrets":{"k:{\"name\":\"ours\"}":{}}}`, `{"name":"theirs"},{"name":"ours"}`), true},
		"an entry with its key":               {account(`{"f:imagePullSecrets":{"k:{\"name\":\"ours\"}":{".":{},"f:name":{}}}}`, `{"name":"theirs"},{"name":"ours"}`), true},
		"an entry that is gone":               {account(`{"f:imagePullSecrets":{"k:{\"name\":\"ours\"}":{".":{},"f:name":{}}}}`, `{"name":"theirs"}`), false},
		"an entry more than is desired":       {account(`{"f:imagePullSecrets":{"k:{\"name\":\"ours\"}":{".":{},"f:name":{}},"k:{\"name\":\"old\"}":{".":{},"f:name":{}}}}`, `{"name":"old"},{"name":"ours"}`), false},
		"a list as a whole":                   {[3]string{`{"args":["a","b"]}`, `{"f:args":{}}`, `{"args":["a","b"]}`}, true},
		"a list as a whole that is longer":    {[3]string{`{"args":["a"]}`, `{"f:args":{}}`, `{"args":["a","b"]}`}, false},
		"values of a set":                     {[3]string{`{"metadata":{"finalizers":["a/b"]}}`, `{"f:metadata":{"f:finalizers":{"v:\"a/b\"":{}}}}`, `{"metadata":{"finalizers":["c/d","a/b"]}}`}, true},
		"nothing":                             {[3]string{`{"metadata":{"labels":{"zone":"a"}}}`, ``, `{"metadata":{"labels":{"zone":"a"}}}`}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var all [2]*unstructured.Unstructured
			for i, text := range []string{tt.of[0], tt.of[2]} {
				all[i] = &unstructured.Unstructured{}
				if err := json.Unmarshal([]byte(text), &all[i].Object); err != nil {
					t.Fatal(err)
				}
				all[i].SetAPIVersion("v1")
				all[i].SetKind("ServiceAccount")
				all[i].SetName("default")
			}
			entries := []metav1.ManagedFieldsEntry{
				{Manager: "m", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:args":{},"f:metadata":{"f:labels":{"f:more":{}}}}`)},
				{Manager: "other", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(labels)},
			}
			if tt.of[1] != "" {
				entries = append(entries, metav1.ManagedFieldsEntry{Manager: "m", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(tt.of[1])})
			}
			all[1].SetManagedFields(entries)
			if got := Holds(all[0], all[1], "m"); got != tt.want {
				t.Errorf("it holds: %t, want %t; applied is %v", got, tt.want, Applied(all[1], "m"))
			}
			if diff := cmp.Diff(tt.of[1] != "", Applies(all[1], "m")); diff != "" {
				t.Error(diff)
			}
		})
	}
}
