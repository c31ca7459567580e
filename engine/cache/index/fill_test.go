// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

// held returns an object with labels as a cache holds it.
func held(t *testing.T, labels map[string]any) *cached.Object {
	t.Helper()
	transformer, err := new(cached.Compressor).NewTransformer(cached.Form{}, schema.GroupVersion{Version: "v1"}, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	o, err := transformer.Transform(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{
		"namespace": "default", "name": "a", "uid": "1", "labels": labels,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return o.(*cached.Object)
}

// TestEntriesOfAnObject holds what an index has of an object, and why it has nothing.
func TestEntriesOfAnObject(t *testing.T) {
	gives := func(entries ...dsl.Entry) dsl.IndexFunc {
		return func(*unstructured.Unstructured) ([]dsl.Entry, error) { return entries, nil }
	}
	tests := map[string]struct {
		spec dsl.IndexSpec
		want []Entry
		err  string // a part of the error
	}{
		"nothing":                  {spec: dsl.IndexSpec{Entries: gives()}},
		"values under keys":        {spec: dsl.IndexSpec{Entries: gives(dsl.Entry{Key: "a", Value: 1}, dsl.Entry{Key: 2, Value: "x"})}, want: []Entry{{must("a"), "1"}, {must(2), `"x"`}}},
		"several under one key":    {spec: dsl.IndexSpec{Entries: gives(dsl.Entry{Key: "a"}, dsl.Entry{Key: "a", Value: []string{"x"}})}, want: []Entry{{must("a"), "null"}, {must("a"), `["x"]`}}},
		"a map, in its one form":   {spec: dsl.IndexSpec{Entries: gives(dsl.Entry{Key: true, Value: map[string]any{"b": 1, "a": 2}})}, want: []Entry{{must(true), `{"a":2,"b":1}`}}},
		"a key that is no key":     {spec: dsl.IndexSpec{Entries: gives(dsl.Entry{Key: []string{"a"}})}, err: "a key is text, a number or true or false, found a list"},
		"a key that is not UTF-8":  {spec: dsl.IndexSpec{Entries: gives(dsl.Entry{Key: "\xff"})}, err: "a key is text in UTF-8"},
		"a value without JSON":     {spec: dsl.IndexSpec{Entries: gives(dsl.Entry{Key: "a", Value: math.Inf(1)})}, err: "reading value"},
		"too many keys":            {spec: dsl.IndexSpec{Entries: gives(make([]dsl.Entry, mostEntries+1)...)}, err: "it has 10001 keys, and the most is 10000"},
		"values that are too long": {spec: dsl.IndexSpec{Entries: gives(dsl.Entry{Key: "a", Value: strings.Repeat("x", mostValues)})}, err: "the values of its 1 keys take more than 16 MiB"},
		"an error of the function": {spec: dsl.IndexSpec{Entries: func(*unstructured.Unstructured) ([]dsl.Entry, error) { return nil, errors.New("no owner") }}, err: "no owner"},
		"a panic of the function":  {spec: dsl.IndexSpec{Entries: func(*unstructured.Unstructured) ([]dsl.Entry, error) { panic("no owner") }}, err: "no owner"},
		"a condition that does not hold": {spec: dsl.IndexSpec{
			When: func(*dsl.Subject) (bool, error) { return false, nil }, Entries: gives(dsl.Entry{Key: "a"}),
		}},
		"a condition that fails": {spec: dsl.IndexSpec{
			When: func(*dsl.Subject) (bool, error) { return true, errors.New("no answer") }, Entries: gives(dsl.Entry{Key: "a"}),
		}, err: "no answer"},
		"a label that does not match": {spec: dsl.IndexSpec{Labels: []dsl.Match{{Key: "app", Value: "y"}}, Entries: gives(dsl.Entry{Key: "a"})}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := (&one{IndexSpec: &tt.spec}).entries(held(t, map[string]any{"app": "x"}))
			if text := fmt.Sprint(err); tt.err == "" && err != nil || tt.err != "" && !strings.Contains(text, tt.err) {
				t.Errorf("the error is %v, want %q", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
		})
	}
}

// TestObjectsThatAreLeftOut follows the objects whose entries fail: the log has the first one, and the end of the last one.
func TestObjectsThatAreLeftOut(t *testing.T) {
	var logged []string
	x := &one{log: funcr.New(func(_, line string) { logged = append(logged, line) }, funcr.Options{})}
	of := func(i int) types.NamespacedName {
		return types.NamespacedName{Namespace: "default", Name: fmt.Sprint("o-", i)}
	}
	for i := range 5 {
		x.left.failed(x, of(i), errors.New("no owner"))
	}
	x.left.recovered(x, of(7)) // it was never left out
	want := "objects are left out: default/o-0: no owner; default/o-1: no owner; default/o-2: no owner; and 2 more"
	if got := x.left.String(); got != want || x.left.count() != 5 || len(logged) != 1 {
		t.Errorf("%d are left out; the log has %d lines; the text is %q", x.left.count(), len(logged), got)
	}
	for i := range 4 {
		x.left.recovered(x, of(i))
	}
	if got := x.left.String(); got != "objects are left out: default/o-4: no owner" || len(logged) != 1 {
		t.Errorf("the log has %d lines; the text is %q", len(logged), got)
	}
	if x.left.recovered(x, of(4)); x.left.String() != "" || len(logged) != 2 || !strings.Contains(logged[1], "all objects are indexed again") {
		t.Errorf("the text is %q, and the log %q", x.left.String(), logged)
	}
}

// TestIndexesBesidePasses holds what code reads that runs outside of reconciles: the values as they are at that time.
func TestIndexesBesidePasses(t *testing.T) {
	b := newBench()
	all := b.Live()
	reader, err := all.Open("x")
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"", "1", "2"} {
		key := "a"
		if value == "" {
			key = ""
		}
		b.put(0, "o", key, value)
		got, err := reader.Get("a")
		if has, _ := reader.Has("a"); strings.Join(got, "") != value || err != nil || has != (value != "") {
			t.Errorf("the value is %q, want %q, and the error %v", got, value, err)
		}
		if keys := reader.Keys(); len(keys) != len(got) {
			t.Errorf("the keys are %v", keys)
		}
	}
	if _, err := reader.Get(nil); err == nil {
		t.Error("null is a key")
	}
	if _, err := all.Open("z"); !dsl.IsPermanent(err) {
		t.Errorf("the error of an index that was not declared is %v", err)
	}
	b.unread = errors.New("forbidden")
	if _, err := all.Open("x"); !errors.Is(err, b.unread) {
		t.Errorf("the error of an index that cannot be read is %v", err)
	}
	if diff := cmp.Diff([]string{"x", "y"}, all.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}
