// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// costly is an expression that costs more than one evaluation may where spec.words has many words.
const costly = "self.spec.words.all(a, self.spec.words.all(b, a == b))"

// words is a list of so many words that are the same, and long: a comparison costs by their length.
func words(n int) (out []any) {
	for range n {
		out = append(out, strings.Repeat("word", 250))
	}
	return out
}

// TestAnExpressionThatCostsTooMuchIsNotTriedAgain holds that an expression over the limit of costs is evaluated once for
// what it reads: each time takes a good part of a second of a core.
func TestAnExpressionThatCostsTooMuchIsNotTriedAgain(t *testing.T) {
	for name, handler := range map[string]string{
		"of a handler": "{id: h, set: {status: {same: '${" + costly + "}'}}}",
		"of a filter":  "{id: h, when: '" + costly + "', set: {status: {same: true}}}",
	} {
		t.Run(name, func(t *testing.T) {
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
				op, err := scene.ParseYAML("{resource: foos.v1.example.com, handlers: [" + handler + "]}")
				if err != nil {
					t.Fatal(err)
				}
				op.Settings.LeaderElection.Mode = dsl.LeaderNone
				asked := 0
				for _, h := range op.Handlers() {
					if when := h.When; when != nil {
						h.When = func(s *dsl.Subject) (bool, error) { asked++; return when(s) }
						continue
					}
					of := h.Func
					h.Func = func(ctx context.Context, r *dsl.Request) error { asked++; return of(ctx, r) }
				}
				c.Start(op)
				c.Create(scene.FooIn("default", "web", map[string]any{"words": words(120)}))
				c.Advance(time.Hour)
				if asked != 1 {
					t.Errorf("it was evaluated %d times in an hour, want once", asked)
				}
				if got := scene.ValueAt(c.Get(scene.Foos, "default", "web"), "status.same"); got != nil {
					t.Errorf("status.same is %v, so the expression costs too little", got)
				}
				c.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
					_ = unstructured.SetNestedSlice(o.Object, words(2), "spec", "words")
				})
				c.Settle()
				if got := scene.ValueAt(c.Get(scene.Foos, "default", "web"), "status.same"); got != true {
					t.Errorf("status.same is %v after the list became short, want true", got)
				}
			})
		})
	}
}

// TestANamespaceHasAShareOfTheWorkers holds that the objects of one namespace, whatever they cost, hold up those of another
// one by a reconcile and not by all of theirs.
func TestANamespaceHasAShareOfTheWorkers(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
		s := scene.NewStage(t, c)
		s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
			foo.Workers = 2
			foo.OnReconcile("work", func(_ context.Context, r *dsl.Request) error {
				if r.Object.GetNamespace() == "loud" {
					<-time.After(time.Second)
				}
				r.Patch.SetStatus("seen", scene.ValueAt(r.Object, "spec.size"))
				return nil
			})
		})
		s.Process = c.Start(s.Operator, func(set *engine.Settings) { set.Metrics = ops.NewMetrics() })
		for n := range 200 {
			c.Create(scene.FooIn("loud", fmt.Sprint("foo-", n), map[string]any{}))
		}
		c.Advance(10 * time.Second)
		c.Create(scene.FooIn("quiet", "foo", map[string]any{"size": int64(1)}))
		c.Advance(2 * time.Second)
		if got := scene.ValueAt(c.Get(scene.Foos, "quiet", "foo"), "status.seen"); got != int64(1) {
			t.Error("after 2 s the only object of its namespace has not been handled")
		}
	})
}
