// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestAJoinedPatchDoesWhatItsPartsDoInTurn holds that an object becomes what the handlers of a reconcile, each of
// which saw what those before it did, have made of it one by one.
func TestAJoinedPatchDoesWhatItsPartsDoInTurn(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 3_000 {
		live := tree{"metadata": tree{"name": "a"}, "spec": anyTree(random, 3, false), "status": anyTree(random, 3, false)}
		inTurn, joined := live, dsl.NewPatch()
		for range 4 {
			p := dsl.NewPatch()
			p.Object["spec"], p.Status = anyTree(random, 3, true), anyTree(random, 3, true)
			joined.Join(p)
			inTurn = applied(inTurn, Change(&unstructured.Unstructured{Object: inTurn}, p, 0, time.Time{}))
		}
		atOnce := applied(live, Change(&unstructured.Unstructured{Object: live}, joined, 0, time.Time{}))
		if diff := cmp.Diff(bare(inTurn), bare(atOnce)); diff != "" {
			t.Fatalf("of %v, %v\nand %v\nthe object is to be (-), and is (+):\n%s", live, joined.Object, joined.Status, diff)
		}
	}
}

// anyTree is an object's part, or a merge patch, which may remove anything, and set a value where objects have maps.
func anyTree(random *rand.Rand, depth int, patch bool) tree {
	out := tree{}
	for _, key := range []string{"value", "map", "other"} {
		switch n := random.IntN(8); {
		case n == 0 && patch:
			out[key] = nil
		case n < 4 && key == "value", n == 1 && patch:
			out[key] = random.Int64N(3)
		case n > 3 && key != "value" && depth > 0:
			out[key] = anyTree(random, depth-1, patch)
		}
	}
	return out
}

// applied is what a server makes of a merge patch.
func applied(object, patch tree) tree {
	out := overlay(object, nil)
	for key, value := range patch {
		sub, isMap := value.(tree)
		below, _ := out[key].(tree)
		switch {
		case value == nil:
			delete(out, key)
		case isMap:
			out[key] = applied(below, sub)
		default:
			out[key] = value
		}
	}
	return out
}

// bare is a tree without empty maps, which a field that is set and removed again leaves or does not leave.
func bare(object tree) tree {
	out := tree{}
	for key, value := range object {
		if sub, isMap := value.(tree); isMap {
			if sub = bare(sub); len(sub) > 0 {
				out[key] = sub
			}
			continue
		}
		out[key] = value
	}
	return out
}

// TestTheEnginesAnnotationsStay holds that a handler which removes all annotations removes those of others alone.
func TestTheEnginesAnnotationsStay(t *testing.T) {
	all := dsl.NewPatch()
	all.Remove("metadata.annotations")
	renewed, one := dsl.NewPatch(), dsl.NewPatch()
	one.Annotate("new", "x")
	renewed.Join(all)
	renewed.Join(one)
	own := dsl.NewPatch()
	own.Remove(`metadata.annotations["op.dev/children"]`)
	tests := map[string]struct {
		patch *dsl.Patch
		marks Marks
		want  tree
	}{
		"all are removed":                                           {all, Marks{}, tree{"theirs": nil}},
		"all are removed, and a state is written":                   {all, Marks{Annotation: "op.dev/state", State: "t"}, tree{"theirs": nil, "op.dev/state": "t"}},
		"all are removed, the state too":                            {all, Marks{Annotation: "op.dev/state"}, tree{"theirs": nil, "op.dev/state": nil}},
		"all are removed, and one goes along":                       {all, Marks{Annotations: map[string]Note{"op.dev/children": {Text: "d"}}}, tree{"theirs": nil, "op.dev/children": "d"}},
		"all are removed, and one of the engine's own":              {all, Marks{Annotations: map[string]Note{"op.dev/children": {Was: "c"}}}, tree{"theirs": nil, "op.dev/children": nil}},
		"one of the engine's own is not removed with another value": {all, Marks{Annotations: map[string]Note{"op.dev/children": {Was: "d"}}}, tree{"theirs": nil}},
		"all are removed, and one is set":                           {renewed, Marks{}, tree{"theirs": nil, "new": "x"}},
		"one of the engine's own is removed by name":                {own, Marks{}, tree{"op.dev/children": nil}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{Object: tree{"metadata": tree{"annotations": tree{"theirs": "x", "op.dev/state": "s", "op.dev/children": "c"}}}}
			got := Target{Prefix: "op.dev"}.objectChange(o, tt.patch, tt.marks).tree
			if diff := cmp.Diff(tree{"metadata": tree{"annotations": tt.want}}, got); diff != "" {
				t.Errorf("change (-want +got):\n%s", diff)
			}
		})
	}
}

// TestConditionsThatAreRemovedStayRemoved holds that of conditions which a handler removes as a whole only those come
// back that are set afterwards.
func TestConditionsThatAreRemovedStayRemoved(t *testing.T) {
	const before = "2020-01-01T00:00:00Z"
	has := func(kind, status string) tree {
		return tree{"type": kind, "status": status, "reason": "R", "message": "", "lastTransitionTime": before}
	}
	removes, sets := dsl.NewPatch(), dsl.NewPatch()
	removes.RemoveStatus("conditions")
	sets.SetCondition("Ready", metav1.ConditionTrue, "R", "")
	tests := map[string]struct {
		live  []any
		parts []*dsl.Patch
		want  tree
	}{
		"one is set afterwards":                     {[]any{has("Old", "True"), has("Ready", "True")}, []*dsl.Patch{removes, sets}, tree{"conditions": []any{has("Ready", "True")}}},
		"one is set afterwards, and is there alone": {[]any{has("Ready", "True")}, []*dsl.Patch{removes, sets}, nil},
		"one was set before":                        {[]any{has("Old", "True")}, []*dsl.Patch{sets, removes}, tree{"conditions": nil}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			joined := dsl.NewPatch()
			for _, p := range tt.parts {
				joined.Join(p)
			}
			o := &unstructured.Unstructured{Object: tree{"status": tree{"conditions": tt.live}}}
			got, _ := Change(o, joined, 0, time.Now())["status"].(tree)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}
