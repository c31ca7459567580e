// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
)

type tree = map[string]any

func TestEssence(t *testing.T) {
	tests := map[string]struct{ object, want tree }{
		"spec and other sections count, status and type do not": {
			tree{"apiVersion": "v1", "kind": "Foo", "spec": tree{"a": int64(1)}, "data": tree{"k": "v"}, "status": tree{"x": "y"}},
			tree{"spec": tree{"a": int64(1)}, "data": tree{"k": "v"}},
		},
		"of the metadata labels and annotations count": {
			tree{"metadata": tree{"name": "n", "resourceVersion": "7", "finalizers": []any{"f"}, "labels": tree{"l": "1"}, "annotations": tree{"a": "1"}}},
			tree{"metadata": tree{"labels": tree{"l": "1"}, "annotations": tree{"a": "1"}}},
		},
		"books of operators and tools do not count": {
			tree{"metadata": tree{"annotations": tree{
				"foo.handwerk.dev/state":                           `{"handwerk":1}`,
				"foo.handwerk.dev/anything":                        "x",
				"foo.example.com/state":                            `{"handwerk":1,"base":{}}`,
				"foo.example.com/applied":                          "handwerk:abc",
				"kubectl.kubernetes.io/last-applied-configuration": "{}",
				"kopf.zalando.org/last-handled-configuration":      "{}",
				"deployment.kubernetes.io/revision":                "1",
			}}},
			tree{},
		},
		"labels by which tools find what they have deployed do not count": {
			tree{"metadata": tree{"labels": tree{"kustomize.toolkit.fluxcd.io/name": "apps", "app.kubernetes.io/managed-by": "Helm", "team": "red"}}},
			tree{"metadata": tree{"labels": tree{"team": "red"}}},
		},
		"a user's annotation beside them does": {
			tree{"metadata": tree{"annotations": tree{"foo.handwerk.dev/state": `{"handwerk":1}`, "team": "red"}}},
			tree{"metadata": tree{"annotations": tree{"team": "red"}}},
		},
		"an empty map equals a missing one": {
			tree{"metadata": tree{"labels": tree{}, "annotations": tree{}}}, tree{},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Essence(tt.object)); diff != "" {
				t.Errorf("essence (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDiff(t *testing.T) {
	from := tree{"spec": tree{"same": "s", "old": int64(1), "list": []any{"a"}, "gone": true, "null": nil, "deep": tree{"x": "1"}}}
	to := tree{"spec": tree{"same": "s", "old": int64(2), "list": []any{"a", "b"}, "new": "n", "deep": tree{"x": "2"}}}
	want := []dsl.Change{
		{Op: dsl.Changed, Path: dsl.Path{"spec", "deep", "x"}, Old: "1", New: "2"},
		{Op: dsl.Removed, Path: dsl.Path{"spec", "gone"}, Old: true},
		{Op: dsl.Changed, Path: dsl.Path{"spec", "list"}, Old: []any{"a"}, New: []any{"a", "b"}},
		{Op: dsl.Added, Path: dsl.Path{"spec", "new"}, New: "n"},
		{Op: dsl.Changed, Path: dsl.Path{"spec", "old"}, Old: int64(1), New: int64(2)},
	}
	if diff := cmp.Diff(want, Diff(from, to)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if got := Diff(from, from); len(got) != 0 {
		t.Errorf("an object differs from itself: %v", got)
	}
}

func TestWithin(t *testing.T) {
	added := dsl.Change{Op: dsl.Added, Path: dsl.Path{"spec"}, New: tree{"replicas": int64(3), "image": "i"}}
	below := dsl.Change{Op: dsl.Changed, Path: dsl.Path{"spec", "replicas"}, Old: int64(1), New: int64(2)}
	beside := dsl.Change{Op: dsl.Changed, Path: dsl.Path{"spec", "image"}, Old: "a", New: "b"}
	tests := map[string]struct {
		changes []dsl.Change
		field   string
		want    []dsl.Change
	}{
		"a change at the field is kept, one beside it is not":   {[]dsl.Change{below, beside}, "spec.replicas", []dsl.Change{below}},
		"a change below the field is kept":                      {[]dsl.Change{below}, "spec", []dsl.Change{below}},
		"a change above the field is narrowed to it":            {[]dsl.Change{added}, "spec.replicas", []dsl.Change{{Op: dsl.Added, Path: dsl.Path{"spec", "replicas"}, New: int64(3)}}},
		"a change above that leaves the field alone is dropped": {[]dsl.Change{added}, "spec.other", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Within(tt.changes, dsl.MustParsePath(tt.field))); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDigest(t *testing.T) {
	if Digest(tree{"a": int64(1), "b": "x"}) != Digest(tree{"b": "x", "a": int64(1)}) {
		t.Error("the digest depends on the order of keys")
	}
	if Digest(tree{"a": int64(1)}) == Digest(tree{"a": "1"}) {
		t.Error("a number and its text have one digest")
	}
	if Digest(nil) == Digest(tree{}) {
		t.Error("a missing field and an empty map have one digest")
	}
}

func TestProject(t *testing.T) {
	essence := tree{"spec": tree{"a": "1", "b": tree{"c": "2", "d": "3"}}, "metadata": tree{"labels": tree{"x.y/z": "4"}}}
	fields := []dsl.Path{dsl.MustParsePath("spec.b.c"), dsl.MustParsePath(`metadata.labels["x.y/z"]`), dsl.MustParsePath("spec.missing")}
	want := tree{"spec": tree{"b": tree{"c": "2"}}, "metadata": tree{"labels": tree{"x.y/z": "4"}}}
	if diff := cmp.Diff(want, project(essence, fields)); diff != "" {
		t.Errorf("projection (-want +got):\n%s", diff)
	}
}

// TestDigestsStayAsTheyAre holds that equal values have equal digests in all versions of the engine: objects have them in their
// progress, and another digest would make every handler run.
func TestDigestsStayAsTheyAre(t *testing.T) {
	tests := map[string]any{
		"ZnzpayuABvw_": tree{"spec": tree{"size": int64(3), "color": "red"}, "metadata": tree{"labels": tree{"app": "web"}}},
		"cFTtwmQgFCrs": tree{"html": "<a href=\"x\">&</a>", "lines": "a\u2028b\u2029c", "text": "grüße 世界 \x7f\t"},
		"V7f5GTzeC0fK": []any{0.1, 1e21, 1e-7, 100000.0, int64(9007199254740993), int64(-9223372036854775808), float64(1 << 62)},
		"30wkc-71toCs": []any{true, nil, tree{}, []any{}, "", []bool{true, false}},
		"-":            nil,
	}
	for want, value := range tests {
		if got := Digest(value); got != want {
			t.Errorf("the digest of %v is %s, want %s", value, got, want)
		}
	}
}
