// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestAChangeAfterAnUpdateIsKnown holds that a process finds the book of an object for which an update handler has run,
// also where a create handler was about to be tried again when the last one ended: otherwise the object would be new to
// it, and a change that nobody saw no change.
func TestAChangeAfterAnUpdateIsKnown(t *testing.T) {
	perform(t, scenario{func(foo *dsl.Resource, j *journal) {
		foo.OnUpdate("follow", j.Note("follow"))
		foo.OnCreate("make", j.Note("make", temporary(5*time.Second), temporary(5*time.Second), temporary(5*time.Second)))
	}, func(s *stage) {
		s.Launch()
		s.Create(web)
		s.Called("make create")
		s.size(7)
		s.CalledInAnyOrder("follow update", "make create")
		s.Process.Kill()
		s.size(8)
		s.Process.Restart()
		s.Settle()
		if !slices.Contains(s.Take(), "follow update") {
			s.t.Error("the change while no process ran is lost")
		}
	}})
}
