// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"strings"
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
	form := Form{Markers: "was/observed/,op/observed/", Made: made, Own: "op,was"}
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
			transformer, err := new(Compressor).NewTransformer(tt.form, schema.GroupVersion{Version: "v1"}, logr.Discard())
			if err != nil {
				t.Fatal(err)
			}
			var in any = u
			if tt.form.Profile == dsl.CacheMetadata {
				in = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: tt.notes, ManagedFields: entries}}
			}
			out, err := transformer.Transform(in)
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

// TestOwnEntriesOfOtherVersionsAreHeld holds that the operator's entries for another version than the object's are held of custom
// resources that it has not made.
func TestOwnEntriesOfOtherVersionsAreHeld(t *testing.T) {
	const made = "op.handwerk.dev/applied"
	tests := map[string]struct {
		apiVersion, made string
		entries          []string
		want             []string
	}{
		"none of the object's version":    {"x.io/v2", "", []string{"op x.io/v2", "op/observed/u x.io/v2"}, nil},
		"one of another version":          {"x.io/v2", "", []string{"op x.io/v1", "op x.io/v2"}, []string{"op"}},
		"one whose version begins so":     {"x.io/v2", "", []string{"op x.io/v2alpha1"}, []string{"op"}},
		"one of a mark":                   {"x.io/v2", "", []string{"op/patch/h/u x.io/v1"}, []string{"op/patch/h/u"}},
		"one of an earlier name":          {"x.io/v2", "", []string{"was x.io/v1"}, []string{"was"}},
		"one of an earlier name's patch":  {"x.io/v2", "", []string{"was/patch/h/u x.io/v1"}, []string{"was/patch/h/u"}},
		"none of another manager":         {"x.io/v2", "", []string{"other x.io/v1", "opera x.io/v1"}, nil},
		"none of a child":                 {"x.io/v2", "handwerk:x", []string{"op x.io/v1"}, nil},
		"none of a built-in kind":         {"apps/v1", "", []string{"op apps/v1beta1"}, nil},
		"none where only metadata is had": {"meta.k8s.io/v1", "", []string{"op x.io/v1"}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": tt.apiVersion, "kind": "Foo"}}
			if tt.made != "" {
				u.SetAnnotations(map[string]string{made: tt.made})
			}
			var entries []metav1.ManagedFieldsEntry
			for _, text := range tt.entries {
				manager, version, _ := strings.Cut(text, " ")
				entries = append(entries, metav1.ManagedFieldsEntry{Manager: manager, APIVersion: version, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)})
			}
			u.SetManagedFields(entries)
			transformer, err := new(Compressor).NewTransformer(Form{Made: made, Own: "op,was"}, schema.FromAPIVersionAndKind(tt.apiVersion, "").GroupVersion(), logr.Discard())
			if err != nil {
				t.Fatal(err)
			}
			out, err := transformer.Transform(u)
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

// TestManagedFieldsThatEndEarly holds that text which ends in the middle of a version has entries of other versions.
func TestManagedFieldsThatEndEarly(t *testing.T) {
	for _, text := range []string{`[{"apiVersion":"x.io/v2`, `[{"apiVersion":"`, `[{"apiVersion":"x.io/v2","manager":"a"},{"apiVersion":"x.io/v2`} {
		if !(managers{version: "x.io/v2"}).differ([]byte(text)) {
			t.Errorf("%s has one version alone", text)
		}
	}
}
