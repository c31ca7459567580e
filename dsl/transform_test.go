// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func transformed() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Foo",
		"metadata": map[string]any{
			"name": "web", "uid": "u", "labels": map[string]any{"a": "1"},
			"annotations": map[string]any{"note": "x", "op.handwerk.dev/state": `{"handwerk":2}`},
			"finalizers":  []any{"example.com/theirs"},
		},
		"spec":   map[string]any{"hosts": []any{"a", "b"}, "size": int64(1)},
		"status": map[string]any{"phase": "Up", "count": int64(2)},
	}}
}

// TestWhatTransformationsMakeOfAPatch holds that it is what they change, and what may be changed.
func TestWhatTransformationsMakeOfAPatch(t *testing.T) {
	spec := func(o *unstructured.Unstructured) map[string]any { return o.Object["spec"].(map[string]any) }
	tests := map[string]struct {
		ask            func(*Patch)
		object, status map[string]any
		wrong          string
		final          bool
	}{
		"an entry of a list": {
			ask: func(p *Patch) {
				p.Transform(func(o *unstructured.Unstructured) error {
					spec(o)["hosts"] = append(spec(o)["hosts"].([]any), "c")
					return nil
				})
			},
			object: map[string]any{"spec": map[string]any{"hosts": []any{"a", "b", "c"}}},
		},
		"the second sees what the first has made": {
			ask: func(p *Patch) {
				double := func(o *unstructured.Unstructured) error {
					spec(o)["size"] = spec(o)["size"].(int64) * 3
					return nil
				}
				p.Transform(double)
				p.Transform(double)
			},
			object: map[string]any{"spec": map[string]any{"size": int64(9)}},
		},
		"nothing": {ask: func(p *Patch) { p.Transform(func(*unstructured.Unstructured) error { return nil }) }},
		"the status and the object by themselves": {
			ask: func(p *Patch) {
				p.JSON(JSONOp{Op: "remove", Path: "/status/phase"}, JSONOp{Op: "replace", Path: "/spec/size", Value: 2})
			},
			object: map[string]any{"spec": map[string]any{"size": int64(2)}},
			status: map[string]any{"phase": nil},
		},
		"the status as a whole": {
			ask:    func(p *Patch) { p.JSON(JSONOp{Op: "remove", Path: "/status"}) },
			status: map[string]any{"phase": nil, "count": nil},
		},
		"all annotations, but for bookkeeping": {
			ask:    func(p *Patch) { p.JSON(JSONOp{Op: "remove", Path: "/metadata/annotations"}) },
			object: map[string]any{"metadata": map[string]any{"annotations": map[string]any{"note": nil}}},
		},
		"a finalizer": {
			ask:    func(p *Patch) { p.JSON(JSONOp{Op: "add", Path: "/metadata/finalizers/-", Value: "example.com/ours"}) },
			object: map[string]any{"metadata": map[string]any{"finalizers": []any{"example.com/theirs", "example.com/ours"}}},
		},
		"a test that holds": {
			ask: func(p *Patch) {
				p.JSON(JSONOp{Op: "test", Path: "/spec/hosts/1", Value: "b"}, JSONOp{Op: "remove", Path: "/spec/hosts/1"})
			},
			object: map[string]any{"spec": map[string]any{"hosts": []any{"a"}}},
		},
		"operations that move, copy, and set null": {
			ask: func(p *Patch) {
				p.JSON(JSONOp{Op: "copy", From: "/spec/size", Path: "/spec/was"}, JSONOp{Op: "move", From: "/metadata/labels/a", Path: "/metadata/labels/b"},
					JSONOp{Op: "test", Path: "/spec/none", Value: nil})
			},
			object: map[string]any{"spec": map[string]any{"was": int64(1)}, "metadata": map[string]any{"labels": map[string]any{"a": nil, "b": "1"}}},
		},
		"a test that does not hold": {
			ask: func(p *Patch) {
				p.JSON(JSONOp{Op: "remove", Path: "/spec/hosts/0"}, JSONOp{Op: "test", Path: "/spec/size", Value: 7})
			},
			wrong: "applying JSON patch: testing value /spec/size failed",
		},
		"a field that is not there": {
			ask: func(p *Patch) { p.JSON(JSONOp{Op: "remove", Path: "/spec/none"}) }, wrong: "applying JSON patch:",
		},
		"an error": {
			ask: func(p *Patch) { p.Transform(func(*unstructured.Unstructured) error { return errors.New("no room") }) }, wrong: "no room",
		},
		"a panic": {
			ask: func(p *Patch) {
				p.Transform(func(o *unstructured.Unstructured) error { return o.Object["none"].(error) })
			},
			wrong: "(transform_test.go:",
		},
		"the name": {
			ask:   func(p *Patch) { p.JSON(JSONOp{Op: "replace", Path: "/metadata/name", Value: "x"}) },
			wrong: "changing metadata.name", final: true,
		},
		"the kind": {
			ask:   func(p *Patch) { p.JSON(JSONOp{Op: "replace", Path: "/kind", Value: "Bar"}) },
			wrong: "changing kind: an object keeps it", final: true,
		},
		"an invalid status": {
			ask:   func(p *Patch) { p.JSON(JSONOp{Op: "replace", Path: "/status", Value: "x"}) },
			wrong: "changing status: it is not a map", final: true,
		},
		"all metadata": {
			ask: func(p *Patch) { p.JSON(JSONOp{Op: "remove", Path: "/metadata"}) }, wrong: "no metadata", final: true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, o := NewPatch(), transformed()
			tt.ask(p)
			if err := p.Err(); err != nil {
				t.Fatal(err)
			}
			got, err := p.Transformed(o)
			if diff := cmp.Diff(transformed(), o); diff != "" {
				t.Errorf("the object itself is changed (-was +is):\n%s", diff)
			}
			if tt.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wrong) || IsPermanent(err) != tt.final {
					t.Errorf("it says %v, want %q, for good: %v", err, tt.wrong, tt.final)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := NewPatch()
			want.Join(&Patch{Object: tt.object, Status: tt.status})
			if diff := cmp.Diff(want.Object, got.Object); diff != "" {
				t.Errorf("object (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want.Status, got.Status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAJSONPatchThatIsNone holds that it is refused where it is asked for.
func TestAJSONPatchThatIsNone(t *testing.T) {
	for name, op := range map[string]JSONOp{
		`unknown op "delete"`: {Op: "delete", Path: "/spec"},
		"encoding JSON patch": {Op: "add", Path: "/spec/x", Value: make(chan int)},
	} {
		p := NewPatch()
		p.JSON(op)
		if err := p.Err(); err == nil || !strings.Contains(err.Error(), name) || len(p.Transforms) > 0 {
			t.Errorf("%+v: it says %v, want %q", op, err, name)
		}
	}
}
