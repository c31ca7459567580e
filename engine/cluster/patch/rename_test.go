// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestAMoveReturnsItsWrites holds that the result of a move has each write, in order, also if others write in between, and
// if the move fails in the end.
func TestAMoveReturnsItsWrites(t *testing.T) {
	tests := map[string]struct {
		before []int
		want   []string
		fails  bool
	}{
		"nobody else writes":                       {nil, []string{"2", "3"}, false},
		"somebody writes before the first":         {[]int{1}, []string{"3", "4"}, false},
		"somebody writes between both":             {[]int{2}, []string{"2", "4"}, false},
		"somebody always writes before the second": {[]int{2, 3, 4, 5, 6, 7, 8}, []string{"2"}, true},
	}
	op := dsl.New("new")
	op.Was = []string{"old"}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: tree{"metadata": tree{
				"name": "a", "uid": "u", "resourceVersion": "1", "labels": tree{"old.handwerk.dev/made": "yes"},
				"managedFields": []any{tree{
					"manager": "old", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
					"fieldsV1": tree{"f:metadata": tree{"f:labels": tree{"f:old.handwerk.dev/made": tree{}}}},
				}},
			}}}
			result, err := NewRenamer(op).Move(t.Context(), Target{Client: &contended{object: object, before: tt.before}, Object: object})
			var got []string
			for _, written := range result.Written {
				got = append(got, written.GetResourceVersion())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || (err != nil) != tt.fails {
				t.Errorf("written versions (-want +got):\n%s%v", diff, err)
			}
		})
	}
}
