// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package upgrades_test

import (
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestARenamedHandlerCanBeRolledBack is law 2 for a version that renames a handler with was, and is taken back: the handler has
// handled under its old id what it handled under the new one.
func TestARenamedHandlerCanBeRolledBack(t *testing.T) {
	version := func(id string, options ...dsl.Option) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("other", scene.Succeeds) // what was handled before is not new
			foo.On(scene.CreateAndUpdate(), id, j.Note(id), options...)
		}
	}
	first, second := version("a"), version("b", dsl.Was("a"))
	notes := func(id string, options ...dsl.Option) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.On(scene.CreateAndUpdate(), "other", scene.Succeeds)
			foo.On(scene.CreateAndUpdate(), id, scene.NotesOld(j), append(options, dsl.Field("spec.size"), dsl.LabelAbsent("tier"))...)
		}
	}
	retries := func(id string, options ...dsl.Option) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate(id, j.Note(id, scene.Fails(dsl.Temporary(scene.ErrAgain, time.Hour))), append(options, dsl.Retries(1))...)
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"what it handled is handled, and nothing is written for that": {Operator: first, Play: func(s *scene.Stage) {
			s.Begin()
			s.Upgrade(second, nil)
			s.Wrote()
			s.Resize(2)
			s.Called("b update")
			s.Wrote("patch foos default/web")
			s.Upgrade(first, nil)
			s.Called()
			s.Wrote()
		}},
		"so is an object that came meanwhile": {Operator: first, Play: func(s *scene.Stage) {
			s.Launch()
			s.Upgrade(second, nil)
			s.Create(scene.Web)
			s.Called("b create")
			s.Upgrade(first, nil)
			s.Called()
		}},
		"a change while no process ran reaches it": {Operator: first, Play: func(s *scene.Stage) {
			s.Begin()
			s.Upgrade(second, nil)
			s.Resize(2)
			s.Called("b update")
			s.Upgrade(first, func() { s.Resize(3) })
			s.Called("a update")
		}},
		"a retry goes on, and then the next version has it": {Operator: retries("a"), Play: func(s *scene.Stage) {
			s.Launch()
			s.Upgrade(retries("b", dsl.Was("a")), nil)
			s.Create(scene.Web)
			s.Called("b create")
			s.Advance(10 * time.Minute)
			s.Upgrade(retries("a"), nil)
			s.Called()
			s.Advance(time.Hour)
			s.Called("a create 2") // it failed for good
			s.Upgrade(retries("b", dsl.Was("a")), nil)
			s.Advance(2 * time.Hour)
			s.Called()
		}},
		"it was renamed twice, and each of its versions knows": {Operator: version("a"), Play: func(s *scene.Stage) {
			s.Launch()
			s.Upgrade(version("c", dsl.Was("a", "b")), nil)
			s.Create(scene.Web)
			s.Called("c create")
			s.Upgrade(version("b", dsl.Was("a")), nil)
			s.Called()
			s.Resize(2)
			s.Called("b update")
			s.Upgrade(version("a"), nil)
			s.Called()
			s.Upgrade(version("c", dsl.Was("b", "a")), nil)
			s.Called()
		}},
		"what it handled otherwise than others is reported there and back": {Operator: notes("a"), Play: func(s *scene.Stage) {
			s.Begin()
			s.LabelTier("gold")
			s.Resize(2)
			s.Upgrade(notes("b", dsl.Was("a")), nil)
			s.LabelTier("")
			s.Called("update map[spec:map[size:1]] [change spec.size 1 2]")
			s.LabelTier("gold")
			s.Resize(3)
			s.Upgrade(notes("a"), nil)
			s.LabelTier("")
			s.Called("update map[spec:map[size:2]] [change spec.size 2 3]")
		}},
		"it is forgotten with the first write of a version that does not say it any more": {Operator: first, Play: func(s *scene.Stage) {
			s.Begin()
			s.Upgrade(second, nil)
			s.Resize(2)
			s.Upgrade(version("b"), nil)
			s.Called()
			s.Resize(3)
			s.Called("b update")
			if text := s.Web().GetAnnotations()[scene.StateAnnotation]; len(text) == 0 || strings.Contains(text, `"a":`) {
				s.T.Errorf("the book is %s", text)
			}
		}},
	})
}
