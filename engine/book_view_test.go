// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// paints is a handler that gives web the color that goes with its size.
func paints(_ context.Context, r *dsl.Request) error {
	size, _ := dsl.MustParsePath("spec.size").In(r.Object.Object)
	r.Patch.Set("spec.color", fmt.Sprint("color-", size))
	return nil
}

// colors notes the color that a handler sees.
func colors(j *journal, id string) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		color, _ := dsl.MustParsePath("spec.color").In(r.Object.Object)
		j.Add(fmt.Sprint(id, " ", r.Cause, " ", color))
		return nil
	}
}

// TestHandlersHearOfEachOther is law 1 for what one handler changes and another looks at.
func TestHandlersHearOfEachOther(t *testing.T) {
	onSize, onColor := dsl.Field("spec.size"), dsl.Field("spec.color")
	scenarios(t, map[string]scenario{
		"a later one hears of it in the same pass, and it is one write": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "size", j.Note("size", succeeds, paints), onSize)
				foo.On(both(), "color", colors(j, "color"), onColor)
			}, func(s *stage) {
				s.begin()
				s.size(2)
				s.Called("size update", "color update color-2")
				s.Wrote("patch foos default/web")
				s.Process.Restart()
				s.Advance(time.Hour)
				s.Called()
				s.Wrote()
			},
		},
		"a later one creates for a field that the object of a person did not have": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "size", j.Note("size", reports), onSize)
				foo.OnCreate("told", j.Note("told"), dsl.Field("status.size"))
				foo.On(both(), "tells", j.Note("tells"), dsl.Field("status.size"))
			}, func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("size create", "told create", "tells create")
				s.Process.Restart()
				s.size(2)
				s.Called("size update", "tells update")
			},
		},
		"an earlier one hears of it in the next": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "color", colors(j, "color"), onColor)
				foo.On(both(), "size", j.Note("size", succeeds, paints), onSize)
			}, func(s *stage) {
				s.begin()
				s.size(2)
				s.Called("size update", "color update color-2")
				s.Process.Restart()
				s.Advance(time.Hour)
				s.Called()
			},
		},
		"an earlier one that is to be tried again is tried with it": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "color", j.Note("color", succeeds, temporary(time.Hour), succeeds), onColor)
				foo.On(both(), "size", j.Note("size", succeeds, paints), onSize)
			}, func(s *stage) {
				s.begin()
				s.set("blue", "spec", "color")
				s.Called("color update")
				s.size(2)
				s.Called("size update", "color update")
				s.Advance(2 * time.Hour)
				s.Called()
			},
		},
		"a level-triggered one hears of it": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "size", j.Note("size", succeeds, paints), onSize)
				foo.OnReconcile("color", colors(j, "color"), onColor)
			}, func(s *stage) {
				s.begin()
				s.size(2)
				s.Called("size update", "color update color-2")
				s.Advance(time.Hour)
				s.Called()
			},
		},
		"one of a level-triggered one is heard of": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("size", j.Note("size", succeeds, paints), onSize)
				foo.On(both(), "color", colors(j, "color"), onColor)
			}, func(s *stage) {
				s.begin()
				s.size(2)
				s.Called("size update", "color update color-2")
				s.Advance(time.Hour)
				s.Called()
			},
		},
		"a chain of three is heard of to its end": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "label", j.Note("label"), dsl.Field("metadata.labels.color"))
				foo.On(both(), "color", j.Note("color", succeeds, func(_ context.Context, r *dsl.Request) error {
					r.Patch.Label("color", "known")
					return nil
				}), onColor)
				foo.On(both(), "size", j.Note("size", succeeds, paints), onSize)
			}, func(s *stage) {
				s.begin()
				s.size(2)
				s.Called("size update", "color update", "label update")
				s.Process.Restart()
				s.Advance(time.Hour)
				s.Called()
			},
		},
		"a crash between the two forgets none": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "color", colors(j, "color"), onColor)
				foo.On(both(), "size", j.Note("size", succeeds, paints), onSize)
			}, func(s *stage) {
				s.begin()
				s.Process.CrashAfter(1)
				s.size(2)
				s.Called("size update")
				s.Process.Kill()
				s.Process.Restart()
				s.Called("color update color-2")
			},
		},
		"what one changes back and forth within a pass is no change": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "size", j.Note("size", succeeds, paints), onSize)
				foo.On(both(), "undo", j.Note("undo", succeeds, func(_ context.Context, r *dsl.Request) error {
					r.Patch.Set("spec.color", "red")
					return nil
				}), onSize)
				foo.On(both(), "color", colors(j, "color"), onColor)
			}, func(s *stage) {
				s.begin()
				s.size(2)
				s.Called("size update", "undo update")
				s.Advance(time.Hour)
				s.Called()
			},
		},
	})
}
