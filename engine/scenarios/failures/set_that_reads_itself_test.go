// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package failures_test

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestASetThatReadsWhatItSetsDoesNotLoop holds that a handler which works a field out from itself, or from the time, is not
// woken by its own write. It writes once for each look: for a new object, a process that begins, and a change of what it
// reads.
func TestASetThatReadsWhatItSetsDoesNotLoop(t *testing.T) {
	const object, status = "patch foos default/web", "patch foos/status default/web"
	for name, test := range map[string]struct {
		set   string
		write string
		size  []string // the writes after somebody has changed spec.size
	}{
		"a field of the spec":   {`{spec: {size: "${self.spec.size + 1}"}}`, object, []string{object}},
		"a field of the status": {`{status: {n: "${self.?status.?n.orValue(0) + 1}"}}`, status, nil},
		"the time":              {`{status: {n: "${string(now)}"}}`, status, nil},
	} {
		t.Run(name, func(t *testing.T) {
			scene.PlayYAML(t, `{resource: foos.v1.example.com, handlers: [{id: feeds, set: `+test.set+`}]}`, func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(24 * time.Hour)
				s.Wrote(test.write)
				s.Set("blue", "spec", "color")
				s.Advance(24 * time.Hour)
				s.Wrote()
				s.Process.Restart()
				s.Advance(24 * time.Hour)
				s.Wrote(test.write)
				s.Resize(10)
				s.Advance(24 * time.Hour)
				s.Wrote(test.size...)
			})
		})
	}
}
