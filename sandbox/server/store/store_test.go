// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"weak"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func object(path string, version int) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Foo", "aaa": "first", "spec": map[string]any{"size": int64(version), "text": `<"&`},
	}}
	namespace, name, _ := strings.Cut(path, "/")
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetResourceVersion(strconv.Itoa(version))
	o.SetLabels(map[string]string{"name": name})
	return o
}

func paths(rows []*Row) []string {
	var out []string
	for _, r := range rows {
		out = append(out, fmt.Sprintf("%s/%s@%d", r.Namespace, r.Name, r.Version))
	}
	return out
}

func TestARowShowsItsObject(t *testing.T) {
	o := object("a/x", 1)
	row := NewRow(o.DeepCopy())
	if diff := cmp.Diff(o, row.Tree()); diff != "" {
		t.Errorf("the tree at once (-want +got):\n%s", diff)
	}
	row = NewRow(o.DeepCopy())
	row.tree.Store(&weak.Pointer[unstructured.Unstructured]{})
	if diff := cmp.Diff(o, row.Tree()); diff != "" {
		t.Errorf("the tree after it was collected (-want +got):\n%s", diff)
	}
	want := `{"apiVersion":"example.com/v2","kind":"Foo","metadata":{"labels":{"name":"x"},"name":"x","namespace":"a","resourceVersion":"1"},` +
		`"aaa":"first","spec":{"size":1,"text":"\u003c\"\u0026"}}`
	if diff := cmp.Diff(want, string(row.Append(nil, "example.com/v2"))); diff != "" {
		t.Errorf("the JSON (-want +got):\n%s", diff)
	}
	want = `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"labels":{"name":"x"},"name":"x","namespace":"a","resourceVersion":"1"}}`
	if diff := cmp.Diff(want, string(row.AppendMetadata(nil, "meta.k8s.io/v1"))); diff != "" {
		t.Errorf("the JSON of its metadata (-want +got):\n%s", diff)
	}
}

func TestObjectsAreInTheOrderOfTheirPaths(t *testing.T) {
	s := New(0)
	for i, path := range []string{"b/x", "a/z", "a-b/y", "a/y", "a0/x", "a-b/x"} {
		s.Commit(Added, object(path, i+1))
	}
	s.Commit(Modified, object("a/z", 7))
	s.Commit(Deleted, object("a-b/y", 8))
	want := []string{"a-b/x@6", "a/y@4", "a/z@7", "a0/x@5", "b/x@1"}
	if diff := cmp.Diff(want, paths(s.In(""))); diff != "" {
		t.Errorf("all namespaces (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a/y@4", "a/z@7"}, paths(s.In("a"))); diff != "" {
		t.Errorf("one namespace (-want +got):\n%s", diff)
	}
	if s.Get("a-b", "y") != nil || s.Get("c", "x") != nil || s.Get("a0", "x") == nil {
		t.Error("a removed object is there, or another is not")
	}
}

func TestAnOldVersionIsWhatItWas(t *testing.T) {
	s := New(0)
	s.Commit(Added, object("a/x", 1))
	s.Commit(Added, object("b/x", 2))
	s.Commit(Modified, object("a/x", 3))
	s.Commit(Deleted, object("b/x", 4))
	s.Commit(Added, object("a/y", 5))
	for version, want := range map[int64][]string{
		1: {"a/x@1"},
		2: {"a/x@1", "b/x@2"},
		3: {"a/x@3", "b/x@2"},
		4: {"a/x@3"},
		5: {"a/x@3", "a/y@5"},
	} {
		rows, known := s.At(version, "")
		if diff := cmp.Diff(want, paths(rows)); diff != "" || !known {
			t.Errorf("version %d, known: %t (-want +got):\n%s", version, known, diff)
		}
	}
	s.Forget(4)
	if _, known := s.At(3, ""); known {
		t.Error("a version is known that was forgotten")
	}
}

func TestTheHistoryHasABound(t *testing.T) {
	s := New(3)
	for version := 1; version <= 50; version++ {
		s.Commit(Modified, object("a/x", version))
		if n := len(s.changes); n >= 6 || version >= 3 && n < 3 {
			t.Fatalf("%d changes at version %d", n, version)
		}
	}
	if changes, known := s.Since(47); !known || len(changes) != 3 || changes[0].Version != 48 {
		t.Errorf("the changes after 47: %v, known: %t", changes, known)
	}
	if _, known := s.Since(40); known {
		t.Error("a client can catch up with changes that were dropped")
	}
}

func TestARestoredStoreHasNoLaterChange(t *testing.T) {
	s := New(0)
	s.Commit(Added, object("a/x", 1))
	restore := s.Backup()
	s.Commit(Modified, object("a/x", 2))
	s.Commit(Added, object("a/y", 3))
	restore(1)
	if diff := cmp.Diff([]string{"a/x@1"}, paths(s.In(""))); diff != "" {
		t.Errorf("the objects (-want +got):\n%s", diff)
	}
	if changes, _ := s.Since(0); len(changes) != 1 {
		t.Errorf("%d changes", len(changes))
	}
	s.Empty(0)
	if changes, _ := s.Since(0); len(changes) != 0 || len(s.In("")) != 0 {
		t.Errorf("an empty store has %d changes and %d objects", len(changes), len(s.In("")))
	}
}
