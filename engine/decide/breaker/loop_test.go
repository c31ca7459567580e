// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package breaker

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestBreakerOpensForLoopsAndNotForProgress(t *testing.T) {
	tests := map[string]struct {
		content func(i int) uint32
		every   time.Duration
		passes  int
		// opens is the reconcile that is one too many, 0 when there is none.
		opens int
		paced bool
	}{
		"the same again and again":               {func(int) uint32 { return 7 }, 10 * time.Millisecond, 100, sameBurst + 2, false},
		"four things in turn":                    {func(i int) uint32 { return uint32(i%4 + 1) }, 10 * time.Millisecond, 100, sameBurst + 5, false},
		"the same, slowly":                       {func(int) uint32 { return 7 }, refill, 1000, 0, false},
		"a roll-out of many children":            {func(i int) uint32 { return uint32(i + 1) }, 50 * time.Millisecond, 300, 0, false},
		"something else each time, without end":  {func(i int) uint32 { return uint32(i + 1) }, 10 * time.Millisecond, 1000, newBurst + 2, false},
		"something else each time, as others do": {func(i int) uint32 { return uint32(i + 1) }, 10 * time.Millisecond, 1000, 0, true},
		"the same again and again, as others do": {func(int) uint32 { return 7 }, 10 * time.Millisecond, 100, sameBurst + 2, true},
		"something else each time, in no hurry":  {func(i int) uint32 { return uint32(i + 1) }, refill, 5000, 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b, now, opened := Breaker{}, time.Unix(1000, 0), 0
			for i := range test.passes {
				if b.Wrote(now, test.content(i), test.paced) {
					opened = i + 1
					break
				}
				now = now.Add(test.every)
			}
			if opened != test.opens {
				t.Errorf("it opened at pass %d, want %d", opened, test.opens)
			}
			if held := b.Wait(now) > 0; held != (opened > 0) {
				t.Errorf("it is held back: %v", held)
			}
		})
	}
}

func TestContentIsWhatWasWritten(t *testing.T) {
	object := func(change func(o *unstructured.Unstructured)) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Foo", "spec": map[string]any{"n": int64(1)},
			"metadata": map[string]any{"name": "a", "uid": "u", "labels": map[string]any{"a": "b"}, "annotations": map[string]any{"op/state": "x", "c": "d"}},
			"status":   map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True", "lastTransitionTime": "1", "observedGeneration": int64(1)}}},
		}}
		change(o)
		return o
	}
	set := func(value any, path ...string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) { _ = unstructured.SetNestedField(o.Object, value, path...) }
	}
	condition := func(key string, value any) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			o.Object["status"].(map[string]any)["conditions"].([]any)[0].(map[string]any)[key] = value
		}
	}
	tests := map[string]struct {
		change     func(*unstructured.Unstructured)
		own, child bool // whether the content is another one
	}{
		"nothing":               {func(*unstructured.Unstructured) {}, false, false},
		"a version":             {set("2", "metadata", "resourceVersion"), false, false},
		"a generation":          {set(int64(2), "metadata", "generation"), false, false},
		"the state annotation":  {set("y", "metadata", "annotations", "op/state"), false, false},
		"a time of a condition": {condition("lastTransitionTime", "2"), false, false},
		"a generation in it":    {condition("observedGeneration", int64(2)), false, false},
		"a condition":           {condition("status", "False"), true, false},
		"another annotation":    {set("e", "metadata", "annotations", "c"), true, true},
		"a label":               {set("e", "metadata", "labels", "a"), true, true},
		"another object":        {set("v", "metadata", "uid"), true, true},
		"a field":               {set(int64(2), "spec", "n"), true, true},
	}
	before := object(func(*unstructured.Unstructured) {})
	for name, test := range tests {
		after := object(test.change)
		for status, want := range map[bool]bool{true: test.own, false: test.child} {
			if got := Content(before, "op/state", status) != Content(after, "op/state", status); got != want {
				t.Errorf("%s: another content: %v, want %v (status: %v)", name, got, want, status)
			}
		}
	}
	if before.GetAnnotations()["op/state"] == "" {
		t.Error("the object was changed")
	}
}
