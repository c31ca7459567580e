// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package failures_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAHubIsNoRing holds that an object may follow many objects that follow it, as fast as these work: each of them rests after
// a few writes.
func TestAHubIsNoRing(t *testing.T) {
	for name, tt := range map[string]struct{ spokes, steps int64 }{
		"each writes once":        {320, 1},
		"each writes three times": {150, 3},
	} {
		t.Run(name, func(t *testing.T) {
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
				s := scene.NewStage(t, c)
				s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
					foo.Relates(dsl.Relation{Name: "spokes", Resource: peer(scene.Bars).Resource, Select: func(*dsl.Subject) (dsl.Selection, error) { return dsl.Selection{}, nil }})
					foo.OnReconcile("count", func(_ context.Context, r *dsl.Request) error {
						all, err := r.Related.Get("spokes")
						done, size := int64(0), scene.ValueAt(r.Object, "spec.size").(int64)
						for _, o := range all {
							done += max(0, number(o)-tt.steps*(size-1))
						}
						r.Patch.SetStatus("n", done)
						return err
					})
				})
				declareBars(s, func(bar *dsl.Resource) {
					bar.Workers = 2
					bar.Relates(peer(scene.Foos))
					bar.OnReconcile("work", func(_ context.Context, r *dsl.Request) error {
						found, err := r.Related.Get("peer")
						if err != nil || len(found) == 0 || number(r.Object) >= tt.steps*scene.ValueAt(found[0], "spec.size").(int64) {
							return err
						}
						<-time.After(10 * time.Millisecond)
						r.Patch.SetStatus("n", number(r.Object)+1)
						return nil
					})
				})
				s.Launch()
				s.Create(scene.Web)
				for i := range tt.spokes {
					s.Create(fmt.Sprintf(`{apiVersion: example.org/v1, kind: Bar, metadata: {name: b-%d}, spec: {ref: web}}`, i))
				}
				for size := range int64(2) {
					s.Resize(size + 1)
					s.Advance(20 * time.Second)
					s.WantField("status.n", tt.spokes*tt.steps)
				}
				if got := s.LoopEvents(); len(got) > 0 {
					t.Errorf("it counts as a loop: %+v", got)
				}
			})
		})
	}
}

// TestAHubWhoseSpokesFollowItIsARing holds that the breaker stops a hub and its related objects where these follow it
// without end.
func TestAHubWhoseSpokesFollowItIsARing(t *testing.T) {
	const passes = 400 // of an object, at most: the breaker allows 300, and some until it sees the ring
	for _, spokes := range []int64{5, 40} {
		t.Run(fmt.Sprint(spokes), func(t *testing.T) {
			x := &rings{most: (spokes + 1) * passes}
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
				s := scene.NewStage(t, c)
				s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
					foo.Owns(scene.Bars)
					foo.OnReconcile("count", x.over(func(r *dsl.Request) (sum int64, err error) {
						all, err := r.Children.List(scene.Bars)
						for _, o := range all {
							sum += number(o)
						}
						return sum, err
					}))
				})
				declareBars(s, func(bar *dsl.Resource) {
					bar.Relates(peer(scene.Foos))
					bar.OnReconcile("follow", x.over(ofPeer("peer")))
				})
				s.Launch()
				owner := s.Create(scene.Web)
				for i := range spokes {
					childOf(s, owner, fmt.Sprint("b", i))
				}
				s.Advance(30 * time.Second)
				if x.calls >= x.most || len(s.LoopEvents()) == 0 {
					t.Errorf("%d calls, Events %+v", x.calls, s.LoopEvents())
				}
			})
		})
	}
}

// TestAnObjectOfARingCanBeDeleted holds that the breaker does not keep an object from its deletion.
func TestAnObjectOfARingCanBeDeleted(t *testing.T) {
	x := &rings{most: ringMost}
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
		foo.Relates(peer(scene.Foos))
		foo.OnReconcile("follow", x.over(ofPeer("peer")))
		foo.OnDelete("farewell", j.Note("farewell"))
	}, Play: func(s *scene.Stage) {
		s.Launch()
		s.Create(scene.FooWithRef("web", "b") + "\n---\n" + scene.FooWithRef("b", "web"))
		s.Advance(time.Second)
		if len(s.LoopEvents()) == 0 {
			s.T.Error("it does not rest")
		}
		s.Remove()
		s.Called("farewell delete")
		s.WantGone()
	}})
}
