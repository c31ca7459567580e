// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestHandlersThatTakeTurnsDoNotCollide holds that handlers which make one child at different times, or after one another,
// are no rivals: no collision is reported, and the child is as the one wants it whose turn it is.
func TestHandlersThatTakeTurnsDoNotCollide(t *testing.T) {
	updates := []dsl.Cause{dsl.Update}
	begins := func(s *scene.Stage) {
		s.Launch()
		s.Create(scene.WebThatShares)
		s.Advance(time.Minute)
	}
	for name, one := range map[string]struct {
		rivalry
		want any
	}{
		"one of create and one of update": {rivalry{operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.OnCreate("first", scene.MakesShared("one", "one"))
			foo.OnUpdate("second", scene.MakesShared("two", "two"))
		}, play: func(s *scene.Stage) {
			begins(s)
			s.Resize(2)
		}}, "two"},
		"one of create and resume, and one of update, and a restart": {rivalry{operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.On([]dsl.Cause{dsl.Create, dsl.Resume}, "first", scene.MakesShared("one", "one"))
			foo.OnUpdate("second", scene.MakesShared("two", "two"))
		}, play: func(s *scene.Stage) {
			begins(s)
			s.Process.Restart()
			s.Resize(2)
		}}, "two"},
		"one for each of two fields": {rivalry{operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.On(updates, "first", scene.MakesShared("one", "one"), dsl.Field("spec.size"))
			foo.On(updates, "second", scene.MakesShared("two", "two"), dsl.Field("spec.color"))
		}, play: func(s *scene.Stage) {
			begins(s)
			s.Resize(2)
			s.Advance(time.Minute)
			s.Set("blue", "spec", "color")
		}}, "two"},
		"one of life and one of the deletion": {rivalry{operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.OnReconcile("first", scene.MakesShared("one", "one"))
			foo.OnDelete("second", scene.MakesShared("two", "two"))
			foo.OnDelete("hold", j.Note("hold", scene.Fails(dsl.Waiting("rain", 0))))
		}, play: func(s *scene.Stage) {
			begins(s)
			s.Remove()
		}}, "two"},
		"one of life that sees the object off, and one of the deletion": {rivalry{operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.On([]dsl.Cause{dsl.Reconcile, dsl.Delete}, "first", func(c context.Context, r *dsl.Request) error {
				if r.Cause == dsl.Delete {
					return nil
				}
				return scene.MakesShared("one", "one")(c, r)
			})
			foo.OnDelete("second", scene.MakesShared("two", "two"))
			foo.OnDelete("hold", j.Note("hold", scene.Fails(dsl.Waiting("rain", 0))))
		}, play: func(s *scene.Stage) {
			begins(s)
			s.Remove()
		}}, "two"},
		"filters where one holds": {rivalry{resource: `{resource: foos.v1.example.com, handlers: [
			{id: first, when: self.spec.size <= 1, apply: {a: ` + sharedBy("one", "one") + `}},
			{id: second, when: self.spec.size > 1, apply: {b: ` + sharedBy("two", "two") + `}}]}`, play: func(s *scene.Stage) {
			begins(s)
			s.Resize(2)
		}}, "two"},
		"one that only makes what is missing": {rivalry{operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.OnReconcile("first", func(c context.Context, r *dsl.Request) error {
				if o, err := r.Children.Get(scene.ConfigMaps, "shared"); err != nil || o != nil {
					return err
				}
				return scene.MakesShared("one", "one")(c, r)
			}, dsl.Field("spec.one"))
			foo.On(updates, "second", scene.MakesShared("two", "two"), dsl.Field("spec.two", "spec.size"))
		}, play: func(s *scene.Stage) {
			begins(s)
			s.Resize(2)
		}}, "two"},
		"one that has given it up, in Go": {rivalry{operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.OnReconcile("first", scene.MakesShared("one", "one"), dsl.Field("spec.one"))
			foo.OnReconcile("second", scene.MakesShared("two", "two"), dsl.Field("spec.two"))
		}, play: func(s *scene.Stage) {
			s.Launch()
			s.Create(apart)
			s.Advance(time.Minute)
			s.Set("none", "spec", "one")
			s.Advance(time.Minute)
			s.Set("shared", "spec", "two")
		}}, "two"},
		"one that has given up what has no owner": {rivalry{resource: `{resource: foos.v1.example.com, handlers: [
			{id: first, apply: {a: {ownership: none, template: ` + sharedBy("one", "one") + `}}},
			{id: second, apply: {b: {ownership: none, template: ` + sharedBy("two", "two") + `}}}]}`, play: func(s *scene.Stage) {
			s.Launch()
			s.Create(apart)
			s.Advance(time.Minute)
			s.Set("none", "spec", "one")
			s.Advance(time.Minute)
			s.Process.Restart()
			s.Set("shared", "spec", "two")
		}}, "two"},
		"one that retains it": {rivalry{resource: `{resource: foos.v1.example.com, handlers: [
			{id: first, apply: {a: {onDelete: retain, template: ` + sharedBy("one", "one") + `}}},
			{id: second, apply: {b: {onDelete: retain, template: ` + sharedBy("two", "two") + `}}}]}`, play: func(s *scene.Stage) {
			s.Launch()
			s.Create(apart)
			s.Advance(time.Minute)
			s.Set("none", "spec", "one")
			s.Advance(time.Minute)
			s.Set("shared", "spec", "two")
		}}, "two"},
		"steps where the first one has given it up": {rivalry{resource: `{resource: foos.v1.example.com, handlers: [{id: both, steps: [
			{apply: {a: {onDelete: retain, template: ` + sharedBy("one", "one") + `}}}, {apply: {b: {onDelete: retain, template: ` + sharedBy("two", "two") + `}}}]}]}`, play: func(s *scene.Stage) {
			s.Launch()
			s.Create(apart)
			s.Advance(time.Minute)
			swapNames(s, "none", "shared")
		}}, "two"},
		"one that is called otherwise in the next version": {rivalry{resource: `{resource: foos.v1.example.com, handlers: [
			{id: before, apply: {a: ` + sharedBy("one", "one") + `}}]}`, play: func(s *scene.Stage) {
			begins(s)
			if err := s.Process.Stop(); err != nil {
				s.T.Fatal(err)
			}
			op, err := scene.ParseYAML(`{resource: foos.v1.example.com, handlers: [{id: first, log: {message: hi}}, {id: second, apply: {b: ` + sharedBy("two", "two") + `}}]}`)
			if err != nil {
				s.T.Fatal(err)
			}
			s.Operator = op
			s.Launch()
		}}, "two"},
	} {
		t.Run(name, func(t *testing.T) {
			one.perform(t, func(s *scene.Stage) {
				one.play(s)
				s.Advance(3 * time.Second) // the first one may have to be asked
				if got := sourceOf(s, "shared"); got != one.want {
					s.T.Errorf("the child is from %v, want %v", got, one.want)
				}
				wantNoMoreWrites(s)
				if got := sourceOf(s, "shared"); got != one.want {
					s.T.Errorf("later the child is from %v, want %v", got, one.want)
				}
				s.WantNoWarning()
			})
		})
	}
}
