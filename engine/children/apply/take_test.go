// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
)

// TestTakenMovesFields: what is taken away becomes the operator's, and what hands have besides stays theirs.
func TestTakenMovesFields(t *testing.T) {
	entry := func(manager, operation, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	desired := objectOf(t, "v1", "ConfigMap", `{"data":{"a":"x"}}`)
	tests := map[string]struct {
		before []metav1.ManagedFieldsEntry
		want   map[string]string
	}{
		"of several hands and a controller": {
			[]metav1.ManagedFieldsEntry{
				entry("op", "Apply", `{"f:data":{"f:a":{}}}`), entry("kubectl-edit", "Update", `{"f:data":{"f:b":{}}}`),
				entry("kubectl-patch", "Update", `{"f:data":{"f:b":{}},"f:immutable":{}}`), entry("controller", "Update", `{"f:data":{"f:b":{}}}`),
			},
			map[string]string{"op": `{"f:data":{"f:a":{},"f:b":{}}}`, "kubectl-patch": `{"f:immutable":{}}`, "controller": `{"f:data":{"f:b":{}}}`},
		},
		"where the operator has none": {
			[]metav1.ManagedFieldsEntry{entry("kubectl-edit", "Update", `{"f:data":{".":{},"f:b":{}}}`)},
			map[string]string{"op": `{"f:data":{"f:b":{}}}`, "kubectl-edit": `{"f:data":{}}`},
		},
		"nothing": {[]metav1.ManagedFieldsEntry{entry("kubectl-edit", "Update", `{"f:data":{"f:a":{}}}`)}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := Applier{Manager: "op", Owner: ownership.Owner{Keys: ownership.KeysOf(&dsl.Operator{Name: "op"})}}
			live := objectOf(t, "v1", "ConfigMap", `{"data":{"a":"x","b":"y"}}`)
			live.SetManagedFields(tt.before)
			out, moved := a.taken(desired, live, a.added(desired, live, false).Fields)
			var got map[string]string
			for _, e := range out {
				if got == nil {
					got = map[string]string{}
				}
				got[e.Manager] = e.FieldsV1.GetRawString()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || moved != (tt.want != nil) {
				t.Errorf("moved: %t, managedFields (-want +got):\n%s", moved, diff)
			}
		})
	}
}
