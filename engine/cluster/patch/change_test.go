// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

type tree = map[string]any

func TestMinimal(t *testing.T) {
	tests := map[string]struct{ base, patch, want tree }{
		"what is there already is left out":                   {tree{"a": "1", "b": tree{"c": int64(2)}}, tree{"a": "1", "b": tree{"c": int64(2)}}, tree{}},
		"what differs is kept, alone":                         {tree{"a": "1", "b": tree{"c": int64(2), "d": "x"}}, tree{"a": "1", "b": tree{"c": int64(3), "d": "x"}}, tree{"b": tree{"c": int64(3)}}},
		"one and 1.0 are the same":                            {tree{"a": int64(1)}, tree{"a": 1.0}, tree{}},
		"removing what is not there is nothing":               {tree{}, tree{"a": nil}, tree{}},
		"removing what is null is nothing":                    {tree{"a": nil}, tree{"a": nil}, tree{}},
		"removing what is there is kept":                      {tree{"a": "1"}, tree{"a": nil}, tree{"a": nil}},
		"removing inside a missing map does not make the map": {tree{}, tree{"m": tree{"a": nil}}, tree{}},
		"an empty map that is missing is made":                {tree{}, tree{"emptyDir": tree{}}, tree{"emptyDir": tree{}}},
		"a map takes the place of a scalar":                   {tree{"a": "1"}, tree{"a": tree{"b": "2"}}, tree{"a": tree{"b": "2"}}},
		"lists are compared whole":                            {tree{"l": []any{"a", "b"}}, tree{"l": []any{"a"}}, tree{"l": []any{"a"}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, minimal(tt.base, tt.patch)); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}

func TestObjectChange(t *testing.T) {
	const finalizer = "foo.handwerk.dev/finalizer"
	object := &unstructured.Unstructured{Object: tree{"metadata": tree{
		"finalizers": []any{"theirs", finalizer}, "annotations": tree{"s": "old"},
	}}}
	bare := &unstructured.Unstructured{Object: tree{"metadata": tree{"finalizers": []any{"theirs"}}}}
	tests := map[string]struct {
		object *unstructured.Unstructured
		marks  Marks
		want   tree
	}{
		"no wish, no change":                      {object, Marks{}, tree{}},
		"a finalizer joins those of others":       {bare, Marks{Finalizer: finalizer, Add: true}, tree{"metadata": tree{"finalizers": []any{"theirs", finalizer}}}},
		"a finalizer that is there is not added":  {object, Marks{Finalizer: finalizer, Add: true}, tree{}},
		"removing it leaves those of others":      {object, Marks{Finalizer: finalizer, Remove: true}, tree{"metadata": tree{"finalizers": []any{"theirs"}}}},
		"a finalizer that is gone is not removed": {bare, Marks{Finalizer: finalizer, Remove: true}, tree{}},
		"a new state is written":                  {object, Marks{Annotation: "s", State: "new"}, tree{"metadata": tree{"annotations": tree{"s": "new"}}}},
		"the same state is not":                   {object, Marks{Annotation: "s", State: "old"}, tree{}},
		"an empty state is removed":               {object, Marks{Annotation: "s"}, tree{"metadata": tree{"annotations": tree{"s": nil}}}},
		"and not where there is none":             {bare, Marks{Annotation: "s"}, tree{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := Target{}.objectChange(tt.object, dsl.NewPatch(), tt.marks)
			if diff := cmp.Diff(tt.want, got.tree); diff != "" {
				t.Errorf("change (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConditions(t *testing.T) {
	const before = "2020-01-01T00:00:00Z"
	has := func(status, reason string, more ...any) tree {
		c := tree{"type": "Ready", "status": status, "reason": reason, "message": "m", "lastTransitionTime": before}
		for i := 0; i < len(more); i += 2 {
			c[more[i].(string)] = more[i+1]
		}
		return c
	}
	want := metav1.Condition{Type: "Ready", Status: "True", Reason: "Up", Message: "m"}
	good, other := has("True", "Up", "observedGeneration", int64(7)), tree{"type": "Other", "status": "False"}
	tests := map[string]struct {
		list    []any
		changed bool
		moved   bool // the transition time
		length  int
	}{
		"a new condition joins those of others":                     {[]any{other}, true, true, 2},
		"the same condition is no change":                           {[]any{has("True", "Up", "observedGeneration", int64(7))}, false, false, 1},
		"another reason does not move the time":                     {[]any{has("True", "Coming", "observedGeneration", int64(7))}, true, false, 1},
		"another status moves the time":                             {[]any{has("False", "Up", "observedGeneration", int64(7))}, true, true, 1},
		"a newer generation is noted":                               {[]any{has("True", "Up", "observedGeneration", int64(6))}, true, false, 1},
		"a schema without observedGeneration is not asked again":    {[]any{has("True", "Up")}, false, false, 1},
		"a condition of others is left alone, with its own content": {[]any{has("True", "Up", "observedGeneration", int64(7)), other}, false, false, 2},
		"what is no condition goes":                                 {[]any{"garbage", tree{"status": "True"}, tree{"type": int64(1)}, nil, good}, true, false, 1},
		"a second one of the type goes":                             {[]any{good, other, has("False", "Down")}, true, false, 2},
		"a transition in the future is replaced":                    {[]any{has("True", "Up", "observedGeneration", int64(7), "lastTransitionTime", "9999-01-01T00:00:00Z")}, true, true, 1},
		"a transition at no time is replaced":                       {[]any{has("True", "Up", "observedGeneration", int64(7), "lastTransitionTime", int64(4))}, true, true, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			list, changed := conditions(tree{"conditions": tt.list}, []metav1.Condition{want}, 7, time.Now())
			if changed != tt.changed || len(list) != tt.length {
				t.Fatalf("changed %v, %d conditions: %v", changed, len(list), list)
			}
			for _, item := range list {
				c := item.(tree)
				if c["type"] == "Ready" && (c["lastTransitionTime"] != before) != tt.moved {
					t.Errorf("lastTransitionTime = %v, want it moved: %v", c["lastTransitionTime"], tt.moved)
				}
			}
		})
	}
}

func TestConditionsThatAreNoListAreReplaced(t *testing.T) {
	want := metav1.Condition{Type: "Ready", Status: "True", Reason: "Up"}
	for _, garbage := range []any{"text", tree{"type": "Ready"}, int64(1)} {
		list, changed := conditions(tree{"conditions": garbage}, []metav1.Condition{want}, 7, time.Now())
		if !changed || len(list) != 1 || typeOf(list[0]) != "Ready" {
			t.Errorf("in place of %v: changed %v, conditions %v", garbage, changed, list)
		}
	}
}

func TestTheObservedGenerationGoesWithOtherChanges(t *testing.T) {
	const field = "observedGeneration"
	tests := map[string]struct {
		status, wants tree
		marks         Marks
		want          tree
	}{
		"it is not the engine's":               {tree{}, tree{field: int64(9)}, Marks{}, tree{field: int64(9)}},
		"nothing else changes":                 {tree{field: int64(1)}, nil, Marks{Observed: 2}, nil},
		"nothing else changes, and it is due":  {tree{field: int64(1)}, nil, Marks{Observed: 2, ObservedAlone: true}, tree{field: int64(2)}},
		"it is so already":                     {tree{field: int64(2)}, nil, Marks{Observed: 2, ObservedAlone: true}, nil},
		"another field changes":                {tree{field: int64(1)}, tree{"a": "b"}, Marks{Observed: 2}, tree{"a": "b", field: int64(2)}},
		"a handler sets another one":           {tree{field: int64(2)}, tree{field: int64(9)}, Marks{Observed: 2}, nil},
		"a handler removes it":                 {tree{field: int64(2)}, tree{field: nil, "a": "b"}, Marks{Observed: 2}, tree{"a": "b"}},
		"the status of a restored object goes": {tree{field: int64(7)}, tree{"a": "b"}, Marks{Observed: 1}, tree{"a": "b", field: int64(1)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := dsl.NewPatch()
			p.Status = test.wants
			got := Target{}.statusChange(&unstructured.Unstructured{Object: tree{"status": test.status}}, p, test.marks)
			want := tree{}
			if test.want != nil {
				want["status"] = test.want
			}
			if diff := cmp.Diff(want, got.tree); diff != "" {
				t.Errorf("change (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDropped(t *testing.T) {
	patch := tree{"status": tree{"kept": "1", "lost": "2", "deep": tree{"lost": "3"}, "removed": nil}, "metadata": tree{"uid": "u"}}
	object := tree{"status": tree{"kept": "1", "deep": tree{}}}
	want := []dsl.Path{{"status", "deep", "lost"}, {"status", "lost"}}
	if diff := cmp.Diff(want, dropped(nil, patch, object)); diff != "" {
		t.Errorf("dropped (-want +got):\n%s", diff)
	}
}

// TestRetiredConditions holds which conditions are taken away: those of the types named that this operator has set, under any of its names, and no handler sets
// with the same write.
func TestRetiredConditions(t *testing.T) {
	o := &unstructured.Unstructured{Object: tree{"status": tree{"conditions": []any{
		tree{"type": "Ours", "status": "True"}, tree{"type": "Former", "status": "True"}, tree{"type": "Theirs", "status": "True"}, tree{"type": "Again", "status": "True"},
		tree{"type": "Marked", "status": "True"},
	}}}}
	o.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "op", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:conditions":{"k:{\"type\":\"Ours\"}":{},"k:{\"type\":\"Again\"}":{}}}}`)},
		{Manager: "earlier", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:conditions":{"k:{\"type\":\"Former\"}":{}}}}`)},
		{Manager: "other", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:conditions":{"k:{\"type\":\"Theirs\"}":{}}}}`)},
		{Manager: "op/observed/1", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:conditions":{"k:{\"type\":\"Marked\"}":{}}}}`)},
	})
	p := dsl.NewPatch()
	for _, kind := range []string{"Ours", "Former", "Theirs", "Again", "None", "Marked"} {
		p.RetireCondition(kind)
	}
	p.SetCondition("Again", metav1.ConditionFalse, "Down", "")
	changed := Target{Manager: "op", Earlier: []string{"earlier"}, Now: time.Now()}.statusChange(o, p, Marks{})
	var left []any
	list, _, _ := unstructured.NestedSlice(changed.tree, "status", "conditions")
	for _, c := range list {
		left = append(left, c.(tree)["type"])
	}
	if diff := cmp.Diff([]any{"Theirs", "Again"}, left); diff != "" {
		t.Errorf("conditions that are left (-want +got):\n%s", diff)
	}
}

// TestManagersAreRenamed holds which field managers get the new name of an operator.
func TestManagersAreRenamed(t *testing.T) {
	op := dsl.New("new")
	op.Was = []string{"old"}
	r := NewRenamer(op)
	want := map[string]string{"old": "new", "old/observed/1": "old/observed/1", "new": "new", "older": "older", "old/observer": "old/observer"}
	for name, is := range want {
		if got := r.manager(name); got != is {
			t.Errorf("%s is %s, want %s", name, got, is)
		}
	}
}
