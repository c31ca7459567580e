// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestWhoElseHasSetACondition holds whose a condition is that the operator may want to set.
func TestWhoElseHasSetACondition(t *testing.T) {
	const keyed, other, whole = `{"f:status":{"f:conditions":{".":{},"k:{\"type\":\"Ready\"}":{"f:status":{}}}}}`,
		`{"f:status":{"f:conditions":{"k:{\"type\":\"Other\"}":{}}}}`, `{"f:status":{"f:conditions":{}}}`
	tests := map[string]struct {
		managed map[string]string
		want    string
	}{
		"no manager":                           {nil, ""},
		"this operator":                        {map[string]string{"op": keyed}, ""},
		"this operator by its mark":            {map[string]string{"op/observed/u-1": keyed}, ""},
		"this operator under its earlier name": {map[string]string{"old": keyed}, ""},
		"another one":                          {map[string]string{"op": other, "them": keyed}, "them"},
		"another one, another condition":       {map[string]string{"them": other}, ""},
		"a person":                             {map[string]string{"kubectl-edit": keyed}, ""},
		"another one, all conditions":          {map[string]string{"them": whole}, "them"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{Object: map[string]any{}}
			var entries []metav1.ManagedFieldsEntry
			for manager, fields := range tt.managed {
				entries = append(entries, metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(fields)})
			}
			o.SetManagedFields(entries)
			if got := Setter(o, []string{"op", "old"}, "Ready"); got != tt.want {
				t.Errorf("it is %q, want %q", got, tt.want)
			}
		})
	}
}
