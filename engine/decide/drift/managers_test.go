// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestManagersAreTheEntriesWithoutTheirFields(t *testing.T) {
	at := metav1.Now()
	entries := []metav1.ManagedFieldsEntry{
		{Manager: "handwerk/shop", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", Time: &at, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`)},
		{Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Subresource: "status"},
	}
	o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}}}
	o.SetManagedFields(entries)
	for i := range entries {
		entries[i].Time, entries[i].FieldsType, entries[i].FieldsV1 = nil, "", nil
	}
	if diff := cmp.Diff(entries, Managers(o)); diff != "" {
		t.Errorf("managers (-want +got):\n%s", diff)
	}
	for name, fields := range map[string]any{"no entries": nil, "no list": "a", "entries that are no objects": []any{"a"}} {
		bad := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"managedFields": fields}}}
		for _, e := range Managers(bad) {
			if e.Manager != "" {
				t.Errorf("%s: manager %q", name, e.Manager)
			}
		}
	}
}
