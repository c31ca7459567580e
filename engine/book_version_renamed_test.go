// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestARenamedHandlerCanBeRolledBack is law 2 for a version that renames a handler with was, and is taken back: the handler has
// handled under its old id what it handled under the new one.
func TestARenamedHandlerCanBeRolledBack(t *testing.T) {
	version := func(id string, options ...dsl.Option) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.OnCreate("other", succeeds) // what was handled before is not new
			foo.On(both(), id, j.Note(id), options...)
		}
	}
	first, second := version("a"), version("b", dsl.Was("a"))
	tells := func(id string, options ...dsl.Option) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.On(both(), "other", succeeds)
			foo.On(both(), id, olds(j), append(options, dsl.Field("spec.size"), dsl.LabelAbsent("tier"))...)
		}
	}
	retries := func(id string, options ...dsl.Option) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.OnCreate(id, j.Note(id, fails(dsl.Temporary(errAgain, time.Hour))), append(options, dsl.Retries(1))...)
		}
	}
	scenarios(t, map[string]scenario{
		"what it handled is handled, and nothing is written for that": {first, func(s *stage) {
			s.begin()
			s.upgrade(second, nil)
			s.Wrote()
			s.size(2)
			s.Called("b update")
			s.Wrote("patch foos default/web")
			s.upgrade(first, nil)
			s.Called()
			s.Wrote()
		}},
		"so is an object that came meanwhile": {first, func(s *stage) {
			s.Launch()
			s.upgrade(second, nil)
			s.Create(web)
			s.Called("b create")
			s.upgrade(first, nil)
			s.Called()
		}},
		"a change while no process ran reaches it": {first, func(s *stage) {
			s.begin()
			s.upgrade(second, nil)
			s.size(2)
			s.Called("b update")
			s.upgrade(first, func() { s.size(3) })
			s.Called("a update")
		}},
		"a retry goes on, and then the next version has it": {retries("a"), func(s *stage) {
			s.Launch()
			s.upgrade(retries("b", dsl.Was("a")), nil)
			s.Create(web)
			s.Called("b create")
			s.Advance(10 * time.Minute)
			s.upgrade(retries("a"), nil)
			s.Called()
			s.Advance(time.Hour)
			s.Called("a create 2") // it failed for good
			s.upgrade(retries("b", dsl.Was("a")), nil)
			s.Advance(2 * time.Hour)
			s.Called()
		}},
		"it was renamed twice, and each of its versions knows": {version("a"), func(s *stage) {
			s.Launch()
			s.upgrade(version("c", dsl.Was("a", "b")), nil)
			s.Create(web)
			s.Called("c create")
			s.upgrade(version("b", dsl.Was("a")), nil)
			s.Called()
			s.size(2)
			s.Called("b update")
			s.upgrade(version("a"), nil)
			s.Called()
			s.upgrade(version("c", dsl.Was("b", "a")), nil)
			s.Called()
		}},
		"what it handled otherwise than others is told there and back": {tells("a"), func(s *stage) {
			s.begin()
			s.label("gold")
			s.size(2)
			s.upgrade(tells("b", dsl.Was("a")), nil)
			s.label("")
			s.Called("update map[spec:map[size:1]] [change spec.size 1 2]")
			s.label("gold")
			s.size(3)
			s.upgrade(tells("a"), nil)
			s.label("")
			s.Called("update map[spec:map[size:2]] [change spec.size 2 3]")
		}},
		"it is forgotten with the first write of a version that does not say it any more": {first, func(s *stage) {
			s.begin()
			s.upgrade(second, nil)
			s.size(2)
			s.upgrade(version("b"), nil)
			s.Called()
			s.size(3)
			s.Called("b update")
			if text := s.web().GetAnnotations()[state]; len(text) == 0 || strings.Contains(text, `"a":`) {
				s.t.Errorf("the book is %s", text)
			}
		}},
	})
}
