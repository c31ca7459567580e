// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package causes_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// paints is a handler that gives web the color that goes with its size.
func paints(_ context.Context, r *dsl.Request) error {
	size, _ := dsl.MustParsePath("spec.size").In(r.Object.Object)
	r.Patch.Set("spec.color", fmt.Sprint("color-", size))
	return nil
}

// colors notes the color that a handler sees.
func colors(j *kit.Journal, id string) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		color, _ := dsl.MustParsePath("spec.color").In(r.Object.Object)
		j.Add(fmt.Sprint(id, " ", r.Cause, " ", color))
		return nil
	}
}

// TestAHandlersChangeRunsHandlersThatLookAtIt is law 1 for what one handler changes and another looks at.
func TestAHandlersChangeRunsHandlersThatLookAtIt(t *testing.T) {
	onSize, onColor := dsl.Field("spec.size"), dsl.Field("spec.color")
	scene.PlayAll(t, map[string]scene.Scenario{
		"a later one hears of it in the same pass, and it is one write": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "size", j.Note("size", scene.Succeeds, paints), onSize)
				foo.On(scene.CreateAndUpdate(), "color", colors(j, "color"), onColor)
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Resize(2)
				s.Called("size update", "color update color-2")
				s.Wrote("patch foos default/web")
				s.Process.Restart()
				s.Advance(time.Hour)
				s.Called()
				s.Wrote()
			},
		},
		"a later one creates for a field that the object of a person did not have": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "size", j.Note("size", scene.Reports), onSize)
				foo.OnCreate("late", j.Note("late"), dsl.Field("status.size"))
				foo.On(scene.CreateAndUpdate(), "both", j.Note("both"), dsl.Field("status.size"))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("size create", "late create", "both create")
				s.Process.Restart()
				s.Resize(2)
				s.Called("size update", "both update")
			},
		},
		"an earlier one hears of it in the next": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "color", colors(j, "color"), onColor)
				foo.On(scene.CreateAndUpdate(), "size", j.Note("size", scene.Succeeds, paints), onSize)
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Resize(2)
				s.Called("size update", "color update color-2")
				s.Process.Restart()
				s.Advance(time.Hour)
				s.Called()
			},
		},
		"an earlier one that is to be tried again is tried with it": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "color", j.Note("color", scene.Succeeds, scene.RetriesAfter(time.Hour), scene.Succeeds), onColor)
				foo.On(scene.CreateAndUpdate(), "size", j.Note("size", scene.Succeeds, paints), onSize)
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Set("blue", "spec", "color")
				s.Called("color update")
				s.Resize(2)
				s.Called("size update", "color update")
				s.Advance(2 * time.Hour)
				s.Called()
			},
		},
		"a level-triggered one hears of it": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "size", j.Note("size", scene.Succeeds, paints), onSize)
				foo.OnReconcile("color", colors(j, "color"), onColor)
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Resize(2)
				s.Called("size update", "color update color-2")
				s.Advance(time.Hour)
				s.Called()
			},
		},
		"one of a level-triggered one is heard of": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("size", j.Note("size", scene.Succeeds, paints), onSize)
				foo.On(scene.CreateAndUpdate(), "color", colors(j, "color"), onColor)
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Resize(2)
				s.Called("size update", "color update color-2")
				s.Advance(time.Hour)
				s.Called()
			},
		},
		"a chain of three is heard of to its end": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "label", j.Note("label"), dsl.Field("metadata.labels.color"))
				foo.On(scene.CreateAndUpdate(), "color", j.Note("color", scene.Succeeds, func(_ context.Context, r *dsl.Request) error {
					r.Patch.Label("color", "known")
					return nil
				}), onColor)
				foo.On(scene.CreateAndUpdate(), "size", j.Note("size", scene.Succeeds, paints), onSize)
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Resize(2)
				s.Called("size update", "color update", "label update")
				s.Process.Restart()
				s.Advance(time.Hour)
				s.Called()
			},
		},
		"a crash between the two forgets none": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "color", colors(j, "color"), onColor)
				foo.On(scene.CreateAndUpdate(), "size", j.Note("size", scene.Succeeds, paints), onSize)
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Process.CrashAfter(1)
				s.Resize(2)
				s.Called("size update")
				s.Process.Kill()
				s.Process.Restart()
				s.Called("color update color-2")
			},
		},
		"what one changes back and forth within a pass is no change": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "size", j.Note("size", scene.Succeeds, paints), onSize)
				foo.On(scene.CreateAndUpdate(), "undo", j.Note("undo", scene.Succeeds, func(_ context.Context, r *dsl.Request) error {
					r.Patch.Set("spec.color", "red")
					return nil
				}), onSize)
				foo.On(scene.CreateAndUpdate(), "color", colors(j, "color"), onColor)
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Resize(2)
				s.Called("size update", "undo update")
				s.Advance(time.Hour)
				s.Called()
			},
		},
	})
}
