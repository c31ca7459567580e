// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestWhoseEntriesAreHeld holds that the entries of the operator's marks are held, people's for objects that the operator has made, and
// others' where it undoes what they do.
func TestWhoseEntriesAreHeld(t *testing.T) {
	const made, mark = "op.handwerk.dev/applied", "op/observed/u-1"
	form := Form{Markers: "was/observed/,op/observed/", Made: made, Own: "op"}
	tests := map[string]struct {
		form  Form
		notes map[string]string
		want  []string
	}{
		"of an object that the operator has not made": {form, nil, []string{mark}},
		"of one that it has made":                     {form, map[string]string{made: "handwerk:x"}, []string{mark, "kubectl-edit", "handwerk-adopted"}},
		"of one whose drift is strict":                {form, map[string]string{made: "handwerk:strict:x"}, []string{mark, "kubectl-edit", "handwerk-adopted", "curl"}},
		"of one whose annotation is another thing":    {form, map[string]string{made: "x"}, []string{mark}},
		"where no marks are asked for":                {Form{Made: made}, map[string]string{made: "handwerk:x"}, []string{"kubectl-edit", "handwerk-adopted"}},
		"where no form asks for it":                   {Form{}, map[string]string{made: "handwerk:x"}, nil},
		"where only metadata is held": {
			Form{Profile: dsl.CacheMetadata, Made: made}, map[string]string{made: "handwerk:x"}, []string{"kubectl-edit", "handwerk-adopted"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
			u.SetAnnotations(tt.notes)
			var entries []metav1.ManagedFieldsEntry
			for _, manager := range []string{"op", mark, "kubectl-edit", "kube-controller-manager", "handwerk-adopted", "curl"} {
				entries = append(entries, metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`)})
			}
			entries = append(entries, metav1.ManagedFieldsEntry{Manager: "of a status", Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`)})
			u.SetManagedFields(entries)
			transform, err := NewTransform(tt.form, schema.GroupVersion{Version: "v1"}, logr.Discard())
			if err != nil {
				t.Fatal(err)
			}
			var in any = u
			if tt.form.Profile == dsl.CacheMetadata {
				in = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: tt.notes, ManagedFields: entries}}
			}
			out, err := transform(in)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range out.(*Object).GetManagedFields() {
				got = append(got, e.Manager)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
		})
	}
}
