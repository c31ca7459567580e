// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// TestALookAfterAPatch holds that a look which goes on from one before it sees what a new one does.
func TestALookAfterAPatch(t *testing.T) {
	object := map[string]any{
		"apiVersion": "example.com/v1", "kind": "Foo", "spec": map[string]any{"a": int64(1)}, "status": map[string]any{"x": int64(1)},
		"metadata": map[string]any{"labels": map[string]any{"l": "1"}, "annotations": map[string]any{"n": "1"}, "finalizers": []any{"f"}},
	}
	field := func(paths ...dsl.Path) dsl.View { return dsl.View{Fields: paths} }
	beside := func(paths ...dsl.Path) dsl.View { return dsl.View{Beside: paths, Only: true} }
	views := map[string]dsl.View{
		"the essence":                   {},
		"a field":                       field(dsl.Path{"spec", "a"}),
		"a field of the status":         field(dsl.Path{"status", "x"}),
		"both":                          field(dsl.Path{"spec", "a"}, dsl.Path{"status", "x"}),
		"an annotation":                 field(dsl.Path{"metadata", "annotations", "n"}),
		"the finalizers":                field(dsl.Path{"metadata", "finalizers"}),
		"the essence and the status":    {Beside: []dsl.Path{{"status"}}},
		"the status alone":              beside(dsl.Path{"status", "x"}),
		"whether there is a status":     {Beside: []dsl.Path{{"spec", "a"}}, Only: true, Parents: []dsl.Path{{"status"}}},
		"whether there is a deep field": {Only: true, Parents: []dsl.Path{{"status", "deep"}}},
		"all of it":                     beside(dsl.Path{"metadata"}, dsl.Path{"status"}),
	}
	patches := map[string]map[string]any{
		"of the status":          {"status": map[string]any{"x": int64(2), "deep": map[string]any{}}},
		"that takes the status":  {"status": nil},
		"of the spec":            {"spec": map[string]any{"a": int64(2)}},
		"of both":                {"spec": map[string]any{"a": int64(2)}, "status": map[string]any{"x": int64(2)}},
		"of a label":             {"metadata": map[string]any{"labels": map[string]any{"l": "2"}}},
		"of an annotation":       {"metadata": map[string]any{"annotations": map[string]any{"n": "2"}}},
		"of nothing that counts": {"metadata": map[string]any{"generation": int64(2)}},
	}
	for by, patch := range patches {
		before := NewSnapshot(object)
		for _, v := range views {
			before.Digest(NewView(v, Own{}))
		}
		patched := plain.Patched(object, patch)
		after := before.With(patched, patch)
		for of, v := range views {
			view := NewView(v, Own{})
			if got, want := after.Digest(view), NewSnapshot(patched).Digest(view); got != want {
				t.Errorf("after a patch %s, of %s: %s, want %s", by, of, got, want)
			}
		}
	}
}

// TestAKeptAnnotationOfAToolCountsWhereItIsNamed holds that a handler which names the annotation of a tool has it in old, and that a
// handler of all annotations, whose old is in the same text, has it not.
func TestAKeptAnnotationOfAToolCountsWhereItIsNamed(t *testing.T) {
	for _, key := range []string{"meta.helm.sh/release-name", "kubectl.kubernetes.io/last-applied-configuration", "shop.example.com/kopf-managed"} {
		t.Run(key, func(t *testing.T) {
			one := reading(updates, dsl.Field(`metadata.annotations["`+key+`"]`)).named("one")
			all := reading(updates, dsl.Field("metadata.annotations")).named("all")
			o := map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: "shop", "note": "x"}}}
			b := Progress{UID: uid}.handled(one, o).handled(all, o)
			snapshot := NewSnapshot(map[string]any{})
			got := reload(t, b, []Handler{one, all}, snapshot.object, []Handler{one, all}, Moment{Look: snapshot})
			for r, want := range map[*Handler]map[string]any{&one: {key: "shop"}, &all: {"note": "x"}} {
				if diff := cmp.Diff(map[string]any{"metadata": map[string]any{"annotations": want}}, oldOf(got, *r)); diff != "" {
					t.Errorf("old of %s (-want +got):\n%s", r.ID, diff)
				}
			}
			if text, _, _ := b.Encode([]Handler{one, all}, snapshot, maxSize); strings.Contains(text, "olds") {
				t.Errorf("the text has more than one state: %s", text)
			}
			wider := all.named("one")
			got = reload(t, b, []Handler{one, all}, snapshot.object, []Handler{wider, all}, Moment{Look: NewSnapshot(o)})
			if e, _ := got.Entry("one"); e.Handled != NewSnapshot(o).Digest(wider.View) {
				t.Error("the handler that comes to look at all annotations is due, though none has changed")
			}
		})
	}
}
