// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// dice throws what objects and patches are made of.
type dice struct{ *rand.Rand }

func (d dice) value(depth int) any {
	switch n := d.IntN(9); {
	case n < 4:
		return []any{nil, int64(1), 1.0, "1"}[n]
	case n < 6 || depth == 0:
		return []any{"x", true, int64(2), 1.5}[d.IntN(4)]
	case n == 6:
		return []any{d.value(depth - 1), d.value(depth - 1)}
	}
	return d.tree(depth - 1)
}

func (d dice) tree(depth int) map[string]any {
	out := map[string]any{}
	for _, key := range []string{"a", "b", "conditions"} {
		if d.IntN(2) == 0 {
			out[key] = d.value(depth)
		}
	}
	return out
}

func (d dice) patch() *dsl.Patch {
	p := dsl.NewPatch()
	fields := []string{"a", "b", "a.a", "a.b", "b.a.a"}
	for range 1 + d.IntN(2) {
		field := fields[d.IntN(len(fields))]
		switch d.IntN(9) {
		case 0:
			p.Set("spec."+field, d.value(2))
		case 1:
			p.Remove("spec." + field)
		case 2, 3:
			p.SetStatus(field, d.value(2))
		case 4:
			p.RemoveStatus(field)
		case 5:
			p.Label("a", fmt.Sprint(d.IntN(3)))
		case 6:
			p.Set("metadata.annotations.a", fmt.Sprint(d.IntN(3)))
		case 7:
			p.SetCondition("Ready", "True", "Done", fmt.Sprint(d.IntN(3)))
		case 8:
			p.Transform(func(o *unstructured.Unstructured) error {
				o.Object["status"] = map[string]any{"a": int64(7)}
				return nil
			})
		}
	}
	return p
}

// TestADraftLooksAsItsObject holds that digests which are not worked out again are those that would be.
func TestADraftLooksAsItsObject(t *testing.T) {
	paths := []dsl.Path{{"spec"}, {"spec", "a"}, {"status"}, {"status", "a"}, {"status", "a", "b"}, {"status", "conditions"}, {"metadata"}, {"metadata", "annotations", "a"}}
	views := []progress.View{progress.NewView(dsl.View{}, progress.Own{})}
	for _, p := range paths {
		views = append(views, progress.NewView(dsl.View{Fields: []dsl.Path{p}}, progress.Own{}), progress.NewView(dsl.View{Beside: []dsl.Path{p}}, progress.Own{}),
			progress.NewView(dsl.View{Beside: []dsl.Path{p}, Only: true}, progress.Own{}), progress.NewView(dsl.View{Only: true, Parents: []dsl.Path{p}}, progress.Own{}),
			progress.NewView(dsl.View{Fields: []dsl.Path{{"spec", "b"}, p}}, progress.Own{}))
	}
	for seed := range uint64(3000) {
		d := dice{rand.New(rand.NewPCG(seed, 1))}
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Foo", "spec": d.tree(3), "metadata": map[string]any{"name": "web"},
		}}
		if d.IntN(3) > 0 {
			o.Object["status"] = d.tree(3)
		}
		at := draftOf(o)
		for step := range 4 {
			for _, v := range views {
				if d.IntN(2) == 0 {
					at.Look.Digest(v)
				}
			}
			p, err := patch.Resolve(at.Current, d.patch(), 1, time.Unix(1e9, 0))
			if err != nil {
				continue
			}
			at = at.With(p, 1, time.Unix(1e9, 0))
			fresh := progress.NewSnapshot(at.Current.Object)
			for _, v := range views {
				if got, want := at.Look.Digest(v), fresh.Digest(v); got != want {
					t.Fatalf("seed %d, step %d, patch %+v of %v: view %s is %s, want %s", seed, step, p, at.Current.Object, v.Name(), got, want)
				}
			}
		}
	}
}
