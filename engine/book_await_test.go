// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

const bars = "bars.v1.example.org"

// TestNothingWaitsForWhatIsGone holds that no memory is left of writes that were waited for.
func TestNothingWaitsForWhatIsGone(t *testing.T) {
	scenarios(t, map[string]scenario{"children that come and go": {
		func(foo *dsl.Resource, j *journal) {
			foo.Owns(configMaps)
			foo.OnReconcile("sweep", j.Note("sweep", func(c ctx, r *dsl.Request) error {
				list, err := r.Children.List(configMaps)
				for _, o := range list {
					if err := r.Children.Delete(c, configMaps, o.GetName()); err != nil {
						return err
					}
					r.Patch.SetStatus("swept", o.GetName())
				}
				return err
			}))
		}, func(s *stage) {
			s.begin()
			owner := s.web()
			for i := range 50 {
				s.HoldWatches(foos)
				name := fmt.Sprintf("dust-%d", i)
				s.Create(owned(owner, "v1", "ConfigMap", name))
				s.Advance(time.Second)
				s.set(name, "metadata", "labels", "last") // news that waits for the write of the status
				s.ReleaseWatches(foos)
				s.at("status.swept", name)
			}
			s.Advance(10 * time.Minute)
			if n := len(s.List(configMaps, "default")); n > 0 {
				s.t.Errorf("%d are left", n)
			}
			if n := engine.Waiting(s.Process.Engine()); n > 0 {
				s.t.Errorf("%d objects are waited for when all is done", n)
			}
		},
	}})
}

// TestOwnWritesToHandledObjects is law 6 for an object that is written to by a handler of another resource
// of the operator: its own pass begins from no older cache.
func TestOwnWritesToHandledObjects(t *testing.T) {
	for name, write := range map[string]dsl.Func{
		"with the client": func(c ctx, r *dsl.Request) error {
			_, err := r.Client.MergePatch(c, bars, "default", "web", map[string]any{"spec": map[string]any{"size": value(r.Object, "spec.size")}})
			return err
		},
		"as a child": func(c ctx, r *dsl.Request) error {
			_, err := r.Children.Apply(c, map[string]any{
				"apiVersion": "example.org/v1", "kind": "Bar", "metadata": map[string]any{"name": "web"},
				"spec": map[string]any{"size": value(r.Object, "spec.size")},
			}, dsl.ChildSpec{Adopt: dsl.AdoptIfUnowned})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
				c.Serve(enginetest.Resource{Name: foos, Kind: "Foo"}, enginetest.Resource{Name: bars, Kind: "Bar"})
				s := newStage(t, c)
				s.Operator.Resource(foos, func(foo *dsl.Resource) {
					foo.Owns(bars)
					foo.OnReconcile("write", write)
				})
				s.Operator.Resource(bars, func(bar *dsl.Resource) {
					bar.Every(time.Second, "beat", s.Note("beat"), dsl.At(dsl.Timing{Every: time.Second, Jitter: -1}))
				})
				s.Create(`{apiVersion: example.org/v1, kind: Bar, metadata: {name: web}, spec: {size: 0}}`)
				s.begin()
				s.Advance(10 * time.Second)
				if n := len(s.Of("beat", "web")); n < 5 {
					t.Fatalf("in ten seconds it ran %d times", n)
				}
				s.HoldWatches(bars)
				s.size(2)
				s.Forget()
				s.Advance(10 * time.Second)
				s.Called()
				s.ReleaseWatches(bars)
				s.Advance(2 * time.Second)
				if last := s.Of("beat", "web"); value(last[len(last)-1].Object, "spec.size") != int64(2) || len(s.Take()) == 0 {
					t.Errorf("what it saw last is %v", last[len(last)-1].Object.Object["spec"])
				}
			})
		})
	}
}

// TestOwnWritesToAnObjectThatWasMadeAgain holds the same where the other object was deleted and made again while a pass over the
// first one ran: what is remembered is about the first one, the write is to the second one.
func TestOwnWritesToAnObjectThatWasMadeAgain(t *testing.T) {
	enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
		c.Serve(enginetest.Resource{Name: foos, Kind: "Foo"}, enginetest.Resource{Name: bars, Kind: "Bar"})
		s := newStage(t, c)
		s.Operator.Resource(foos, func(foo *dsl.Resource) {
			foo.OnReconcile("write", func(c ctx, r *dsl.Request) error {
				_, err := r.Client.MergePatch(c, bars, "default", "web", map[string]any{"spec": map[string]any{"size": value(r.Object, "spec.size")}})
				return err
			})
		})
		const blocks = 7
		gate := make(chan struct{})
		s.Operator.Resource(bars, func(bar *dsl.Resource) {
			bar.OnReconcile("look", s.Note("look", func(_ ctx, r *dsl.Request) error {
				if value(r.Object, "spec.size") == int64(blocks) {
					<-gate
				}
				return nil
			}))
		})
		bar := `{apiVersion: example.org/v1, kind: Bar, metadata: {name: web}, spec: {size: %d}}`
		s.Create(fmt.Sprintf(bar, 0))
		s.begin()
		s.size(blocks)
		s.Settle()
		s.Delete(bars, "default", "web")
		s.Create(fmt.Sprintf(bar, 0))
		s.Settle()
		s.HoldWatches(bars)
		s.size(2)
		s.Settle()
		s.Forget()
		before := len(s.Of("look", "web"))
		close(gate)
		s.Advance(10 * time.Second)
		s.Called() // before the cache shows the write
		s.ReleaseWatches(bars)
		s.Advance(2 * time.Second)
		if all := s.Of("look", "web")[before:]; len(all) != 1 || value(all[0].Object, "spec.size") != int64(2) {
			t.Errorf("it ran %d times, want once for size 2", len(all))
		}
	})
}
