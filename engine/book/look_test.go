// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book

import (
	"testing"

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
		before := NewLook(object)
		for _, v := range views {
			before.Digest(NewView(v, Own{}))
		}
		patched := plain.Patched(object, patch)
		after := before.With(patched, patch)
		for of, v := range views {
			view := NewView(v, Own{})
			if got, want := after.Digest(view), NewLook(patched).Digest(view); got != want {
				t.Errorf("after a patch %s, of %s: %s, want %s", by, of, got, want)
			}
		}
	}
}

// TestAnnotationsThatCountedBefore holds that an object whose marks of tools were a part of what was handled by an earlier release is not
// handled again for that, and that old is what it was, without them.
func TestAnnotationsThatCountedBefore(t *testing.T) {
	h := &dsl.Handler{ID: "a", Causes: []dsl.Cause{dsl.Create, dsl.Update}}
	for name, view := range map[string]dsl.View{"the essence": {}, "annotations": {Fields: []dsl.Path{{"metadata", "annotations"}}}} {
		t.Run(name, func(t *testing.T) {
			notes := map[string]any{"meta.helm.sh/release-name": "shop", "note": "x"}
			object := map[string]any{"metadata": map[string]any{"annotations": notes}, "spec": map[string]any{"size": int64(1)}}
			r := Reader{Handler: h, View: NewView(view, Own{})}
			look := NewLook(object)
			before := (&Look{object: object, essence: object}).Digest(r.View) // as a release did that knew no Helm
			if now := look.Digest(r.View); now == before {
				t.Fatal("the mark is still looked at")
			}
			if e := (Entry{Of: r.View.Name(), Seen: before}).renewed(r, look); e.Seen != look.Digest(r.View) {
				t.Error("it is handled again")
			}
			if e := (Entry{Of: r.View.Name(), Seen: "another"}).renewed(r, look); e.Seen != "another" {
				t.Error("a change is lost")
			}
			if old := lookBack(object).Digest(r.View); old != look.Digest(r.View) {
				t.Error("old has the mark")
			}
		})
	}
}
