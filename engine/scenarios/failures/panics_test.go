// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package failures_test

import (
	"context"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAPanicFailsItsHandlerAlone is law 9: a handler that panics costs itself alone.
func TestAPanicFailsItsHandlerAlone(t *testing.T) {
	panics := func(context.Context, *dsl.Request) error { panic("at the disco") }
	scene.PlayAll(t, map[string]scene.Scenario{
		"a panic is a failure like any other, of that handler": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("panics", j.Note("panics", panics, panics, scene.Succeeds))
				foo.OnCreate("next", j.Note("next"))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("panics create", "next create")
				s.Advance(time.Minute)
				s.Called("panics create 2", "panics create 3")
			},
		},
		"a panic with nil, and one of a runtime error": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("panics", j.Note("panics", func(context.Context, *dsl.Request) error {
					var none map[string]int
					none["x"]++
					return nil
				}, func(context.Context, *dsl.Request) error { panic(nil) }, scene.Succeeds))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Minute)
				s.Called("panics create", "panics create 2", "panics create 3")
			},
		},
		"a predicate that panics hides the object from its handler alone": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("panics", j.Note("panics"), dsl.When(func(*dsl.Subject) (bool, error) { panic("at the disco") }))
				foo.OnCreate("next", j.Note("next"))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("next create")
			},
		},
	})
}
