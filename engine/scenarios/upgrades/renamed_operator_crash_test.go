// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package upgrades_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestACrashWhileAnOperatorIsRenamedLosesNothing holds that it ends where no crash ends, whatever the write after which it comes.
func TestACrashWhileAnOperatorIsRenamedLosesNothing(t *testing.T) {
	for after := 1; after <= 14; after++ {
		t.Run(fmt.Sprintf("after write %d", after), func(t *testing.T) {
			playRenaming(t, func(s *renaming) {
				s.Process.Kill()
				s.full = false
				s.crash(after)
				s.Advance(time.Minute)
				for _, line := range s.Take() {
					if !strings.HasPrefix(line, "child ") {
						s.T.Errorf("it called %s", line)
					}
				}
				s.Resize(2)
				s.calls("size update", "child update")
				s.marked("new.handwerk.dev", "new")
				s.kept()
				s.Remove()
				s.Called("left delete")
				s.gone()
			})
		})
		t.Run(fmt.Sprintf("in a deletion after write %d", after), func(t *testing.T) {
			playRenaming(t, func(s *renaming) {
				s.Process.Kill()
				s.Remove()
				s.crash(after)
				s.Advance(time.Minute)
				if calls := s.Take(); len(calls) == 0 || slices.ContainsFunc(calls, func(line string) bool { return !strings.HasPrefix(line, "left delete") }) {
					s.T.Errorf("it called %v", calls)
				}
				s.gone()
			})
		})
	}
}

// crash starts the operator under its new name, which crashes after so many writes, and starts it again.
func (s *renaming) crash(after int) {
	s.T.Helper()
	s.Forget()
	s.Forbid("list", scene.Foos)
	s.run("new", "", "op")
	s.Process.CrashAfter(after)
	s.Allow("list", scene.Foos)
	s.Advance(10 * time.Minute)
	s.Process.Kill()
	s.Process.Restart()
}
