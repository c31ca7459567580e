// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// webWithLittleRoom is a web whose spec takes a lot of room, and which has annotations of others that leave room for
// so many bytes.
func webWithLittleRoom(blob, room int) string {
	return fmt.Sprintf(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, annotations: {theirs: %s}},
		spec: {size: 1, color: red, blob: %q}}`, strings.Repeat("x", 256<<10-len("theirs")-room), noise(blob))
}

// TestTheStateGivesWayToAnnotationsOfOthers holds that what is kept on an object gives way to what others
// keep there: no write of the operator is refused for it, and nothing is repeated.
func TestTheStateGivesWayToAnnotationsOfOthers(t *testing.T) {
	keeps := func(foo *dsl.Resource, j *kit.Journal) {
		foo.On(scene.CreateAndUpdate(), "changed", j.Note("changed", scene.Reports))
		foo.OnDelete("left", j.Note("left"))
	}
	handled := func(s *scene.Stage) {
		s.Advance(time.Hour)
		wantNoRefusedWrite(s)
		s.Called("changed create")
		s.Resize(2)
		s.Advance(time.Hour)
		wantNoRefusedWrite(s)
		s.Called("changed update")
		s.WantField("status.size", int64(2))
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"the essence gives way": {Operator: keeps, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(webWithLittleRoom(130<<10, 60<<10))
			handled(s)
			s.Process.Restart()
			s.Advance(time.Hour)
			s.Called()
			s.Resize(3)
			s.Called("changed update")
			wantNoRefusedWrite(s)
		}},
		"it gives way when others come later": {Operator: keeps, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(webWithLittleRoom(100<<10, 140<<10))
			handled(s)
			s.Set(strings.Repeat("x", 160<<10), "metadata", "annotations", "theirs")
			s.Set(noise(150<<10), "spec", "blob")
			s.Advance(time.Hour)
			s.Forget()
			s.Resize(3)
			s.Advance(time.Hour)
			s.Called("changed update")
			wantNoRefusedWrite(s)
		}},
		"an object is handled and let go where there is no room at all": {Operator: keeps, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(webWithLittleRoom(0, 10))
			handled(s)
			s.Remove()
			s.Called("left delete")
			wantNoRefusedWrite(s)
			if s.Web() != nil {
				s.T.Error("the object is still there")
			}
		}},
	})
}

// wantNoRefusedWrite checks that no write since the last look was refused.
func wantNoRefusedWrite(s *scene.Stage) {
	s.T.Helper()
	s.Settle()
	writes := s.Writes()
	for _, w := range writes {
		if w.Code >= 400 {
			s.T.Errorf("of %d writes one was refused: %s", len(writes), w)
			return
		}
	}
}
