// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// BenchmarkChildTouched measures what it costs an owner of many children that one of them changes, for each change: where no
// handler looks at what has changed, and where one does, but nothing is to be done.
func BenchmarkChildTouched(b *testing.B) {
	changes := map[string]func(child *unstructured.Unstructured, n int){
		"nobody looks": func(child *unstructured.Unstructured, n int) {
			child.SetAnnotations(withText(child.GetAnnotations(), "example.com/touched", fmt.Sprint(n)))
		},
		"one looks": func(child *unstructured.Unstructured, n int) {
			child.SetLabels(withText(child.GetLabels(), "app", fmt.Sprint(n)))
		},
	}
	for name, change := range changes {
		for _, count := range []int{1, 10, 100, 500} {
			b.Run(fmt.Sprintf("%s of %d", name, count), func(b *testing.B) {
				x := newBustle(b, 0)
				op, err := scene.ParseYAML(`{resource: foos.v1.example.com, handlers: [{id: bars, apply: {bar: {forEach: "${lists.range(self.spec.size)}",
					template: {apiVersion: example.org/v1, kind: Bar, metadata: {name: "bar-${item}", labels: {app: bar, item: "${string(item)}"}},
						spec: {color: "${self.spec.color}", of: "${self.metadata.name}", item: "${item}"}}}}}]}`)
				if err != nil {
					b.Fatal(err)
				}
				x.cluster.Create(map[string]any{
					"apiVersion": "example.com/v1", "kind": "Foo", "metadata": map[string]any{"name": "foo"}, "spec": map[string]any{"size": count, "color": "red"},
				})
				op.Settings.LeaderElection.Mode = dsl.LeaderNone
				for _, h := range op.Handlers() {
					of := h.Func
					h.Func = func(ctx context.Context, r *dsl.Request) error {
						defer x.runs.Add(1)
						return of(ctx, r)
					}
				}
				x.launch(op, engine.Settings{Config: x.cluster.Config()})
				for engine.Child(x.engine, "default", fmt.Sprintf("bar-%d", count-1)) == nil {
					<-time.After(time.Millisecond)
				}
				<-time.After(time.Second) // the echoes of its writes
				states := touched(b, engine.Child(x.engine, "default", fmt.Sprintf("bar-%d", count/2)), change)
				b.ReportAllocs()
				for n := 0; b.Loop(); n++ {
					if before := x.runs.Load(); engine.ChildChanged(x.engine, states[n%2], states[(n+1)%2]) {
						x.await(before + 1)
					}
				}
				x.end()
			})
		}
	}
}

// touched are two states of a child.
func touched(b *testing.B, child *cached.Object, change func(child *unstructured.Unstructured, n int)) (out [2]*cached.Object) {
	b.Helper()
	transformer, err := new(cached.Compressor).NewTransformer(cached.Form{Made: "op.handwerk.dev/applied"}, schema.GroupVersion{Group: "example.org", Version: "v1"}, logr.Discard())
	if err != nil {
		b.Fatal(err)
	}
	for n := range out {
		tree := child.Tree()
		change(tree, n)
		state, err := transformer.Transform(tree)
		if err != nil {
			b.Fatal(err)
		}
		out[n] = state.(*cached.Object)
	}
	return out
}

func withText(of map[string]string, key, value string) map[string]string {
	of[key] = value
	return of
}
