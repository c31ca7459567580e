// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package writes_test

import (
	"context"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestWhatSomebodyWritesWhileOtherCodeRunsStays is TestWhatSomebodyWritesWhileAHandlerRunsStays for code that runs for other
// reasons: what somebody wrote stays, and the code runs once more and sees that.
func TestWhatSomebodyWritesWhileOtherCodeRunsStays(t *testing.T) {
	bySize := dsl.Field("spec.size")
	tests := map[string]struct {
		declare func(foo *dsl.Resource, code dsl.Func)
		then    func(s *scene.Stage)
	}{
		"a timer": {func(foo *dsl.Resource, code dsl.Func) { foo.Every(time.Hour, "one", code) }, nil},
		"a timer of objects at rest": {func(foo *dsl.Resource, code dsl.Func) {
			foo.On(nil, "one", code, dsl.At(dsl.Timing{Idle: time.Minute}))
		}, nil},
		"a handler of events": {func(foo *dsl.Resource, code dsl.Func) { foo.OnEvent("one", code) }, nil},
		"a sub-handler": {func(foo *dsl.Resource, code dsl.Func) {
			foo.On(scene.CreateAndUpdate(), "one", func(_ context.Context, r *dsl.Request) error { r.Handle("part", code); return nil }, bySize)
		}, nil},
		"a sub-handler beside one that fails": {func(foo *dsl.Resource, code dsl.Func) {
			foo.On(scene.CreateAndUpdate(), "one", func(_ context.Context, r *dsl.Request) error {
				r.Handle("part", code)
				r.Handle("other", scene.Fails(dsl.Temporary(scene.ErrAgain, time.Hour)))
				return nil
			}, bySize)
		}, nil},
		"a step": {func(foo *dsl.Resource, code dsl.Func) {
			foo.On(scene.CreateAndUpdate(), "one", dsl.Steps(code, scene.Succeeds), bySize)
		}, nil},
		"a step before one that waits": {func(foo *dsl.Resource, code dsl.Func) {
			foo.On(scene.CreateAndUpdate(), "one", dsl.Steps(code, scene.Fails(dsl.Waiting("rain", time.Hour))), bySize)
		}, nil},
		"a handler that fails": {func(foo *dsl.Resource, code dsl.Func) {
			foo.On(scene.CreateAndUpdate(), "one", func(c context.Context, r *dsl.Request) error {
				if err := code(c, r); err != nil {
					return err
				}
				return dsl.Temporary(scene.ErrAgain, time.Hour)
			}, bySize)
		}, nil},
		"a handler that fails for good": {func(foo *dsl.Resource, code dsl.Func) {
			foo.On(scene.CreateAndUpdate(), "one", func(c context.Context, r *dsl.Request) error {
				if err := code(c, r); err != nil {
					return err
				}
				return dsl.Permanent(scene.ErrAgain)
			}, bySize)
		}, nil},
		"a resync": {func(foo *dsl.Resource, code dsl.Func) {
			foo.Resync = time.Hour
			foo.OnResync("one", code)
		}, nil},
		"a handler of children": {func(foo *dsl.Resource, code dsl.Func) {
			foo.Owns(scene.ConfigMaps)
			foo.OnCreate("map", scene.KeepsConfigMap(dsl.ChildSpec{}))
			foo.OnChild("one", code, bySize)
		}, func(s *scene.Stage) { s.ChangeConfigMap("default", scene.SpoilValue) }},
		"a delete handler": {func(foo *dsl.Resource, code dsl.Func) {
			foo.OnDelete("one", func(c context.Context, r *dsl.Request) error {
				if err := code(c, r); err != nil {
					return err
				}
				return dsl.Temporary(scene.ErrAgain, time.Hour)
			}, bySize)
		}, func(s *scene.Stage) { s.Remove() }},
		"what a state of a machine does when it is entered": {func(foo *dsl.Resource, code dsl.Func) {
			foo.Machine(dsl.Machine{States: []dsl.State{{Name: "One", Enter: code, Terminal: true}}})
		}, nil},
		"what a state of a machine does": {func(foo *dsl.Resource, code dsl.Func) {
			foo.Machine(dsl.Machine{States: []dsl.State{{Name: "One", During: code, Terminal: true}}})
		}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var s *scene.Stage
			scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, _ *kit.Journal) {
				ran := false
				test.declare(foo, func(_ context.Context, r *dsl.Request) error {
					if scene.DefaultColor(r); !ran {
						ran = true
						s.Update(scene.Foos, "default", "web", scene.SetField("green", "spec", "color"))
					}
					if color := scene.ValueAt(r.Object, "spec.color"); color != nil {
						r.Patch.SetStatus("saw", color)
					}
					return nil
				})
			}, Play: func(on *scene.Stage) {
				s = on
				s.Launch()
				s.Create(scene.WebWithoutColor)
				s.Settle()
				if test.then != nil {
					test.then(s)
				}
				s.Advance(61 * time.Minute)
				s.WantField("spec.color", "green")
				s.WantField("status.saw", "green")
			}})
		})
	}
}
