// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pause_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestNothingRunsWhilePaused holds that no handler, timer, daemon, time-out or repair runs for a paused object, and that all that
// came up meanwhile is handled afterwards.
func TestNothingRunsWhilePaused(t *testing.T) {
	playAll(t, map[string]play{
		"an update waits, and the newest state is handled": {scene.EachCause, func(s *scene.Stage, w way) {
			s.Begin()
			w.pause(s)
			s.Resize(2)
			s.Resize(3)
			s.Advance(time.Hour)
			s.Called()
			w.resume(s)
			s.Called("changed update", "sized update")
		}},
		"an update that is taken back is none": {scene.EachCause, func(s *scene.Stage, w way) {
			s.Begin()
			w.pause(s)
			s.Resize(2)
			s.Advance(time.Minute)
			s.Resize(1)
			w.resume(s)
			s.Advance(time.Hour)
			s.Called()
		}},
		"the pause itself is no change": {scene.EachCause, func(s *scene.Stage, w way) {
			s.Begin()
			w.pause(s)
			w.resume(s)
			s.Advance(time.Hour)
			s.Called()
		}},
		"a new process obeys from its start": {scene.EachCause, func(s *scene.Stage, w way) {
			s.Begin()
			w.pause(s)
			s.Resize(2)
			s.Process.Restart()
			s.Advance(time.Hour)
			s.Called()
			w.resume(s)
			s.Called("changed update", "sized update", "back resume")
		}},
		"timers do not fire; one that fell due fires once": {everyMinute, func(s *scene.Stage, w way) {
			s.Begin()
			s.Advance(2*time.Minute + 30*time.Second)
			s.Called(minutes(2)...)
			w.pause(s)
			s.Advance(time.Hour)
			s.Called()
			w.resume(s)
			s.Called(minutes(1)...)
			s.Advance(2 * time.Minute)
			s.Called(minutes(2)...)
		}},
		"a daemon stops, and begins again": {watches, func(s *scene.Stage, w way) {
			s.Begin()
			w.pause(s)
			s.Called("ends: it is paused")
			s.Advance(time.Hour)
			s.Called()
			w.resume(s)
			s.Called("begins")
		}},
		"the time-out of a machine waits": {runsForAnHour, func(s *scene.Stage, w way) {
			s.Begin()
			w.pause(s)
			s.Advance(3 * time.Hour)
			s.WantState("Running")
			w.resume(s)
			s.WantState("Failed")
		}},
		"a child is not repaired": {keepsValue, func(s *scene.Stage, w way) {
			s.Begin()
			w.pause(s)
			s.Update(scene.ConfigMaps, "default", "web", scene.SpoilValue)
			s.Advance(time.Hour)
			if got := value(s); got != "drifted" {
				s.T.Errorf("the value is %v", got)
			}
			w.resume(s)
			if got := value(s); got != "1" {
				s.T.Errorf("the value is %v after the pause", got)
			}
		}},
		"a deleted child is not made again": {keepsValue, func(s *scene.Stage, w way) {
			s.Begin()
			w.pause(s)
			s.Delete(scene.ConfigMaps, "default", "web")
			s.Advance(time.Hour)
			if got := value(s); got != nil {
				s.T.Errorf("the value is %v", got)
			}
			w.resume(s)
			if got := value(s); got != "1" {
				s.T.Errorf("the value is %v after the pause", got)
			}
		}},
		"a related object's change waits": {
			scene.NotesRelated(dsl.Relation{Select: scene.RelatedByName}, dsl.Create, dsl.RelatedChange), func(s *scene.Stage, w way) {
				s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {v: "1"}}`)
				s.Launch()
				s.Create(scene.FooWithRef("web", "a"))
				s.Forget()
				w.pause(s)
				s.Update(scene.ConfigMaps, "default", "a", scene.SetField("2", "data", "v"))
				s.Advance(time.Hour)
				s.Called()
				w.resume(s)
				s.Called("web related: default/a=2")
			},
		},
		"an index's change waits": {scene.LooksUp(dsl.Create, dsl.IndexChange), func(s *scene.Stage, w way) {
			s.LaunchWithIndex()
			s.Create(scene.FooWithRef("web", "a"))
			s.Forget()
			w.pause(s)
			s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {for: a, v: x}}`)
			s.Advance(time.Hour)
			s.Called()
			w.resume(s)
			s.Called("web index: x")
		}},
		"a retry waits": {func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("sync", j.Note("sync", scene.RetriesAfter(time.Minute), scene.Succeeds))
		}, func(s *scene.Stage, w way) {
			s.Begin()
			w.pause(s)
			s.Advance(time.Hour)
			s.Called()
			w.resume(s)
			s.Called("sync create 2")
		}},
		"an event handler hears of the last event": {func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnEvent("hear", j.Note("hear"))
		}, func(s *scene.Stage, w way) {
			s.Begin()
			w.pause(s)
			s.Resize(2)
			s.Advance(time.Minute)
			s.Called()
			w.resume(s)
			if got := s.Take(); len(got) == 0 || got[0] != "hear event" {
				s.T.Errorf("calls %v", got)
			}
		}},
	})
}

// TestAPausedObjectSaysSo holds where a pause of an object is seen.
func TestAPausedObjectSaysSo(t *testing.T) {
	playAll(t, map[string]play{
		"a condition comes in one write, and goes in one": {scene.EachCause, func(s *scene.Stage, w way) {
			if w.message == "" {
				s.T.Skip("it writes to no object")
			}
			s.Begin()
			w.pause(s)
			s.WantCondition("Paused", "True@1 "+w.reason+": "+w.message)
			s.Wrote(scene.StatusWrite)
			s.Resize(2)
			s.Advance(time.Hour)
			s.Process.Restart()
			s.Advance(time.Hour)
			s.Wrote()
			w.resume(s)
			s.WantCondition("Paused")
			s.Wrote(scene.StatusWrite, "patch foos default/web")
		}},
		"/readyz?verbose names it, and it is no fault": {scene.EachCause, func(s *scene.Stage, w way) {
			s.Begin()
			w.pause(s)
			s.Advance(time.Minute)
			if got := checks(s); !slices.ContainsFunc(got, func(line string) bool { return strings.Contains(line, w.check) }) {
				s.T.Errorf("the checks are %q, want %q among them", got, w.check)
			}
			w.resume(s)
			if got := checks(s); len(got) > 0 {
				s.T.Errorf("after the pause the checks are %q", got)
			}
		}},
	})
}

// TestAPauseThatComesMeanwhile holds that a pause counts at once, whichever it is: a handler that runs goes to its end, and no other
// one and no daemon begins.
func TestAPauseThatComesMeanwhile(t *testing.T) {
	playAll(t, map[string]play{
		"in a pass": {func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("slow", j.Note("slow", scene.TakesTime(time.Minute)))
			foo.OnReconcile("after", j.Note("after"))
			watches(foo, j)
		}, func(s *scene.Stage, w way) {
			s.Launch()
			s.Create(scene.Web)
			s.Called("slow create")
			w.pause(s)
			s.Advance(time.Hour)
			s.Called()
			w.resume(s)
			s.Called("after create", "begins")
		}},
		"while all workers are busy": {func(foo *dsl.Resource, j *kit.Journal) {
			foo.Workers = 1
			foo.OnReconcile("slow", func(ctx context.Context, r *dsl.Request) error {
				if r.Object.GetName() == "other" {
					return scene.TakesTime(time.Hour)(ctx, r)
				}
				return nil
			})
			watches(foo, j)
		}, func(s *scene.Stage, w way) {
			s.Begin()
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: other}}`)
			s.Forget()
			w.pause(s)
			s.Called("ends: it is paused")
		}},
	})
}
