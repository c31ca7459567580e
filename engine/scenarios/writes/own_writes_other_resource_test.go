// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package writes_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestNoPassStartsBeforeAWriteOfAnotherResourceIsSeen is law 6 for an object that is written to by a handler of another resource
// of the operator: its own pass begins from no older cache.
func TestNoPassStartsBeforeAWriteOfAnotherResourceIsSeen(t *testing.T) {
	for name, write := range map[string]dsl.Func{
		"with the client": func(c context.Context, r *dsl.Request) error {
			_, err := r.Client.MergePatch(c, scene.Bars, "default", "web", map[string]any{"spec": map[string]any{"size": scene.ValueAt(r.Object, "spec.size")}})
			return err
		},
		"as a child": func(c context.Context, r *dsl.Request) error {
			_, err := r.Children.Apply(c, map[string]any{
				"apiVersion": "example.org/v1", "kind": "Bar", "metadata": map[string]any{"name": "web"},
				"spec": map[string]any{"size": scene.ValueAt(r.Object, "spec.size")},
			}, dsl.ChildSpec{Adopt: dsl.AdoptIfUnowned})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"}, kit.Resource{Name: scene.Bars, Kind: "Bar"})
				s := scene.NewStage(t, c)
				s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
					foo.Owns(scene.Bars)
					foo.OnReconcile("write", write)
				})
				s.Operator.Resource(scene.Bars, func(bar *dsl.Resource) {
					bar.Every(time.Second, "beat", s.Note("beat"), dsl.At(dsl.Timing{Every: time.Second, Jitter: -1}))
				})
				s.Create(`{apiVersion: example.org/v1, kind: Bar, metadata: {name: web}, spec: {size: 0}}`)
				s.Begin()
				s.Advance(10 * time.Second)
				if n := len(s.Of("beat", "web")); n < 5 {
					t.Fatalf("in ten seconds it ran %d times", n)
				}
				s.HoldWatches(scene.Bars)
				s.Resize(2)
				s.Forget()
				s.Advance(10 * time.Second)
				s.Called()
				s.ReleaseWatches(scene.Bars)
				s.Advance(2 * time.Second)
				if last := s.Of("beat", "web"); scene.ValueAt(last[len(last)-1].Object, "spec.size") != int64(2) || len(s.Take()) == 0 {
					t.Errorf("what it saw last is %v", last[len(last)-1].Object.Object["spec"])
				}
			})
		})
	}
}

// TestNoPassStartsBeforeAWriteToAnObjectThatWasMadeAgainIsSeen holds the same where the other object was deleted and made
// again while a reconcile over the first one ran: what is remembered is about the first one, the write is to the second one.
func TestNoPassStartsBeforeAWriteToAnObjectThatWasMadeAgainIsSeen(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"}, kit.Resource{Name: scene.Bars, Kind: "Bar"})
		s := scene.NewStage(t, c)
		s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
			foo.OnReconcile("write", func(c context.Context, r *dsl.Request) error {
				_, err := r.Client.MergePatch(c, scene.Bars, "default", "web", map[string]any{"spec": map[string]any{"size": scene.ValueAt(r.Object, "spec.size")}})
				return err
			})
		})
		const blocks = 7
		gate := make(chan struct{})
		s.Operator.Resource(scene.Bars, func(bar *dsl.Resource) {
			bar.OnReconcile("look", s.Note("look", func(_ context.Context, r *dsl.Request) error {
				if scene.ValueAt(r.Object, "spec.size") == int64(blocks) {
					<-gate
				}
				return nil
			}))
		})
		bar := `{apiVersion: example.org/v1, kind: Bar, metadata: {name: web}, spec: {size: %d}}`
		s.Create(fmt.Sprintf(bar, 0))
		s.Begin()
		s.Resize(blocks)
		s.Settle()
		s.Delete(scene.Bars, "default", "web")
		s.Create(fmt.Sprintf(bar, 0))
		s.Settle()
		s.HoldWatches(scene.Bars)
		s.Resize(2)
		s.Settle()
		s.Forget()
		before := len(s.Of("look", "web"))
		close(gate)
		s.Advance(10 * time.Second)
		s.Called() // before the cache shows the write
		s.ReleaseWatches(scene.Bars)
		s.Advance(2 * time.Second)
		if all := s.Of("look", "web")[before:]; len(all) != 1 || scene.ValueAt(all[0].Object, "spec.size") != int64(2) {
			t.Errorf("it ran %d times, want once for size 2", len(all))
		}
	})
}
