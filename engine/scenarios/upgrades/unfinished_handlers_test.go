// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package upgrades_test

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAnotherVersionRunsWhatIsUnfinished is law 1 across versions of an operator: what a handler has not handled, or has
// begun with, is not forgotten because the next version of it looks elsewhere.
func TestAnotherVersionRunsWhatIsUnfinished(t *testing.T) {
	averted := func(fields ...string) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.On(scene.CreateAndUpdate(), "other", j.Note("other"), dsl.NoOld())
			foo.On(scene.CreateAndUpdate(), "h", j.Note("h"), dsl.Field(fields...), dsl.LabelAbsent("tier"))
		}
	}
	waiting := func(options ...dsl.Option) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnUpdate("h", j.Note("h", scene.Fails(dsl.Waiting("rain", 0))), options...)
		}
	}
	size, color := dsl.Field("spec.size"), dsl.Field("spec.color")
	away := func(s *scene.Stage) func() {
		return func() {
			s.LabelTier("gold")
			s.Set("blue", "spec", "color")
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"a change that it did not see so far": {Operator: averted("spec.size"), Play: func(s *scene.Stage) {
			s.Begin()
			s.Upgrade(averted("spec.color"), away(s))
			s.Called("other update")
			s.LabelTier("")
			s.Called("other update", "h update")
		}},
		"the same in a third version, which looks at more": {Operator: averted("spec.size"), Play: func(s *scene.Stage) {
			s.Begin()
			s.Upgrade(averted("spec.color"), away(s))
			s.Called("other update")
			s.Upgrade(averted("spec.color", "spec.size"), nil)
			s.Called()
			s.LabelTier("")
			s.Called("other update", "h update")
		}},
		"a change that it waits with, and that is taken back meanwhile": {Operator: waiting(size), Play: func(s *scene.Stage) {
			s.Begin()
			s.Resize(2)
			s.Called("h update")
			s.Advance(11 * time.Second)
			s.Upgrade(waiting(color), func() { s.Resize(1) })
			s.Called("h update")
			s.Advance(time.Minute)
			s.Forget()
			s.Advance(5 * time.Hour)
			s.Wrote()
		}},
	})
}

// TestAHandlerWithOtherCausesInAnotherVersionSeesChanges holds that one which was to create the object, and did not see it,
// runs for the changes that it is for now.
func TestAHandlerWithOtherCausesInAnotherVersionSeesChanges(t *testing.T) {
	version := func(causes ...dsl.Cause) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("other", j.Note("other"))
			foo.On(causes, "h", j.Note("h"), dsl.Label("tier", "gold"))
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"of creation and change, and of change now": {Operator: version(scene.CreateAndUpdate()...), Play: func(s *scene.Stage) {
			s.Begin()
			s.Upgrade(version(dsl.Update), nil)
			s.LabelTier("gold")
			s.Called() // it begins with the object as it sees it first
			s.Resize(2)
			s.Called("h update")
		}},
	})
}
