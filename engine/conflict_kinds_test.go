// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestWhatSomebodyWritesWhileOtherCodeRunsStays is TestWhatSomebodyWritesWhileAHandlerRunsStays for code that runs for other
// reasons: what somebody wrote stays, and the code runs once more and sees that.
func TestWhatSomebodyWritesWhileOtherCodeRunsStays(t *testing.T) {
	bySize := dsl.Field("spec.size")
	tests := map[string]struct {
		declare func(foo *dsl.Resource, code dsl.Func)
		then    func(s *stage)
	}{
		"a timer": {func(foo *dsl.Resource, code dsl.Func) { foo.Every(time.Hour, "one", code) }, nil},
		"a timer of objects at rest": {func(foo *dsl.Resource, code dsl.Func) {
			foo.On(nil, "one", code, dsl.At(dsl.Timing{Idle: time.Minute}))
		}, nil},
		"a handler of events": {func(foo *dsl.Resource, code dsl.Func) { foo.OnEvent("one", code) }, nil},
		"a sub-handler": {func(foo *dsl.Resource, code dsl.Func) {
			foo.On(both(), "one", func(_ ctx, r *dsl.Request) error { r.Handle("part", code); return nil }, bySize)
		}, nil},
		"a sub-handler beside one that fails": {func(foo *dsl.Resource, code dsl.Func) {
			foo.On(both(), "one", func(_ ctx, r *dsl.Request) error {
				r.Handle("part", code)
				r.Handle("other", fails(dsl.Temporary(errAgain, time.Hour)))
				return nil
			}, bySize)
		}, nil},
		"a step": {func(foo *dsl.Resource, code dsl.Func) { foo.On(both(), "one", dsl.Steps(code, succeeds), bySize) }, nil},
		"a step before one that waits": {func(foo *dsl.Resource, code dsl.Func) {
			foo.On(both(), "one", dsl.Steps(code, fails(dsl.Waiting("rain", time.Hour))), bySize)
		}, nil},
		"a handler that fails": {func(foo *dsl.Resource, code dsl.Func) {
			foo.On(both(), "one", func(c ctx, r *dsl.Request) error {
				if err := code(c, r); err != nil {
					return err
				}
				return dsl.Temporary(errAgain, time.Hour)
			}, bySize)
		}, nil},
		"a handler that fails for good": {func(foo *dsl.Resource, code dsl.Func) {
			foo.On(both(), "one", func(c ctx, r *dsl.Request) error {
				if err := code(c, r); err != nil {
					return err
				}
				return dsl.Permanent(errAgain)
			}, bySize)
		}, nil},
		"a resync": {func(foo *dsl.Resource, code dsl.Func) {
			foo.Resync = time.Hour
			foo.OnResync("one", code)
		}, nil},
		"a handler of children": {func(foo *dsl.Resource, code dsl.Func) {
			foo.Owns(configMaps)
			foo.OnCreate("map", keepsMap(dsl.ChildSpec{}))
			foo.OnChild("one", code, bySize)
		}, func(s *stage) { s.drift("default", spoil) }},
		"a delete handler": {func(foo *dsl.Resource, code dsl.Func) {
			foo.OnDelete("one", func(c ctx, r *dsl.Request) error {
				if err := code(c, r); err != nil {
					return err
				}
				return dsl.Temporary(errAgain, time.Hour)
			}, bySize)
		}, func(s *stage) { s.remove() }},
		"what a state of a machine does when it is entered": {func(foo *dsl.Resource, code dsl.Func) {
			foo.Machine(dsl.Machine{States: []dsl.State{{Name: "One", Enter: code, Terminal: true}}})
		}, nil},
		"what a state of a machine does": {func(foo *dsl.Resource, code dsl.Func) {
			foo.Machine(dsl.Machine{States: []dsl.State{{Name: "One", During: code, Terminal: true}}})
		}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var s *stage
			perform(t, scenario{func(foo *dsl.Resource, _ *journal) {
				ran := false
				test.declare(foo, func(_ ctx, r *dsl.Request) error {
					if defaultColor(r); !ran {
						ran = true
						s.Update(foos, "default", "web", puts("green", "spec", "color"))
					}
					if color := value(r.Object, "spec.color"); color != nil {
						r.Patch.SetStatus("saw", color)
					}
					return nil
				})
			}, func(on *stage) {
				s = on
				s.Launch()
				s.Create(colorless)
				s.Settle()
				if test.then != nil {
					test.then(s)
				}
				s.Advance(61 * time.Minute)
				s.at("spec.color", "green")
				s.at("status.saw", "green")
			}})
		})
	}
}
