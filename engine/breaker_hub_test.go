// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

// TestAHubIsNoRing holds that an object may follow many objects that follow it, as fast as these work: each of them rests after
// a few writes.
func TestAHubIsNoRing(t *testing.T) {
	for name, tt := range map[string]struct{ spokes, steps int64 }{
		"each writes once":        {400, 1},
		"each writes three times": {150, 3},
	} {
		t.Run(name, func(t *testing.T) {
			enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
				c.Serve(enginetest.Resource{Name: foos, Kind: "Foo"})
				s := newStage(t, c)
				s.Operator.Resource(foos, func(foo *dsl.Resource) {
					foo.Relates(dsl.Relation{Name: "spokes", Resource: peer(bars).Resource, Select: func(*dsl.Subject) (dsl.Selection, error) { return dsl.Selection{}, nil }})
					foo.OnReconcile("count", func(_ ctx, r *dsl.Request) error {
						all, err := r.Related.Get("spokes")
						done, size := int64(0), value(r.Object, "spec.size").(int64)
						for _, o := range all {
							done += max(0, number(o)-tt.steps*(size-1))
						}
						r.Patch.SetStatus("n", done)
						return err
					})
				})
				s.bar(func(bar *dsl.Resource) {
					bar.Workers = 2
					bar.Relates(peer(foos))
					bar.OnReconcile("work", func(_ ctx, r *dsl.Request) error {
						found, err := r.Related.Get("peer")
						if err != nil || len(found) == 0 || number(r.Object) >= tt.steps*value(found[0], "spec.size").(int64) {
							return err
						}
						<-time.After(10 * time.Millisecond)
						r.Patch.SetStatus("n", number(r.Object)+1)
						return nil
					})
				})
				s.Launch()
				s.Create(web)
				for i := range tt.spokes {
					s.Create(fmt.Sprintf(`{apiVersion: example.org/v1, kind: Bar, metadata: {name: b-%d}, spec: {ref: web}}`, i))
				}
				for size := range int64(2) {
					s.size(size + 1)
					s.Advance(20 * time.Second)
					s.at("status.n", tt.spokes*tt.steps)
				}
				if got := s.loops(); len(got) > 0 {
					t.Errorf("it counts as a loop: %+v", got)
				}
			})
		})
	}
}

// TestAHubWhoseSpokesFollowItIsARing holds that the breaker stops a hub and its related objects where these follow it without end.
func TestAHubWhoseSpokesFollowItIsARing(t *testing.T) {
	const passes = 400 // of an object, at most: the breaker allows 300, and some until it sees the ring
	for _, spokes := range []int64{5, 20, 60} {
		t.Run(fmt.Sprint(spokes), func(t *testing.T) {
			x := &rings{most: (spokes + 1) * passes}
			enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
				c.Serve(enginetest.Resource{Name: foos, Kind: "Foo"})
				s := newStage(t, c)
				s.Operator.Resource(foos, func(foo *dsl.Resource) {
					foo.Owns(bars)
					foo.OnReconcile("count", x.over(func(r *dsl.Request) (sum int64, err error) {
						all, err := r.Children.List(bars)
						for _, o := range all {
							sum += number(o)
						}
						return sum, err
					}))
				})
				s.bar(func(bar *dsl.Resource) {
					bar.Relates(peer(foos))
					bar.OnReconcile("follow", x.over(ofPeer("peer")))
				})
				s.Launch()
				owner := s.Create(web)
				for i := range spokes {
					s.childOf(owner, fmt.Sprint("b", i))
				}
				s.Advance(30 * time.Second)
				if x.calls >= x.most || len(s.loops()) == 0 {
					t.Errorf("%d calls, Events %+v", x.calls, s.loops())
				}
			})
		})
	}
}

// TestAnObjectOfARingCanBeDeleted holds that the breaker does not keep an object from its deletion.
func TestAnObjectOfARingCanBeDeleted(t *testing.T) {
	x := &rings{most: ringMost}
	perform(t, scenario{func(foo *dsl.Resource, j *journal) {
		foo.Relates(peer(foos))
		foo.OnReconcile("follow", x.over(ofPeer("peer")))
		foo.OnDelete("farewell", j.Note("farewell"))
	}, func(s *stage) {
		s.Launch()
		s.Create(foo("web", "b") + "\n---\n" + foo("b", "web"))
		s.Advance(time.Second)
		if len(s.loops()) == 0 {
			s.t.Error("it does not rest")
		}
		s.remove()
		s.Called("farewell delete")
		s.gone()
	}})
}
