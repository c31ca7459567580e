// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestWhatIsStillToRunInAnotherVersion is law 1 across versions of an operator: what a handler has not handled, or has
// begun with, is not forgotten because the next version of it looks elsewhere.
func TestWhatIsStillToRunInAnotherVersion(t *testing.T) {
	averted := func(fields ...string) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.On(both(), "other", j.Note("other"), dsl.NoOld())
			foo.On(both(), "h", j.Note("h"), dsl.Field(fields...), dsl.LabelAbsent("tier"))
		}
	}
	waiting := func(options ...dsl.Option) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.OnUpdate("h", j.Note("h", fails(dsl.Waiting("rain", 0))), options...)
		}
	}
	size, color := dsl.Field("spec.size"), dsl.Field("spec.color")
	away := func(s *stage) func() {
		return func() {
			s.label("gold")
			s.set("blue", "spec", "color")
		}
	}
	scenarios(t, map[string]scenario{
		"a change that it did not see so far": {averted("spec.size"), func(s *stage) {
			s.begin()
			s.upgrade(averted("spec.color"), away(s))
			s.Called("other update")
			s.label("")
			s.Called("other update", "h update")
		}},
		"the same in a third version, which looks at more": {averted("spec.size"), func(s *stage) {
			s.begin()
			s.upgrade(averted("spec.color"), away(s))
			s.Called("other update")
			s.upgrade(averted("spec.color", "spec.size"), nil)
			s.Called()
			s.label("")
			s.Called("other update", "h update")
		}},
		"a change that it waits with, and that is taken back meanwhile": {waiting(size), func(s *stage) {
			s.begin()
			s.size(2)
			s.Called("h update")
			s.Advance(11 * time.Second)
			s.upgrade(waiting(color), func() { s.size(1) })
			s.Called("h update")
			s.Advance(time.Minute)
			s.Forget()
			s.Advance(5 * time.Hour)
			s.Wrote()
		}},
	})
}

// TestAHandlerThatHasOtherCausesInAnotherVersion holds that one which was to create the object, and did not see it,
// is told of the changes that it is for now.
func TestAHandlerThatHasOtherCausesInAnotherVersion(t *testing.T) {
	version := func(causes ...dsl.Cause) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.OnCreate("other", j.Note("other"))
			foo.On(causes, "h", j.Note("h"), dsl.Label("tier", "gold"))
		}
	}
	scenarios(t, map[string]scenario{
		"of creation and change, and of change now": {version(both()...), func(s *stage) {
			s.begin()
			s.upgrade(version(dsl.Update), nil)
			s.label("gold")
			s.Called() // it begins with the object as it sees it first
			s.size(2)
			s.Called("h update")
		}},
	})
}
