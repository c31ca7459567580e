// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package timers_test

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAHandlerInYAMLSaysWhenItRunsAgain holds that runAgainAfter is a time, or an expression over the object as it is at each run.
func TestAHandlerInYAMLSaysWhenItRunsAgain(t *testing.T) {
	polls := func(after string) string { return `{id: poll, runAgainAfter: ` + after + `, log: {message: polled}}` }
	for name, tt := range map[string]struct {
		handlers string
		play     func(s *scene.Stage)
	}{
		"a time": {polls("1m"), func(s *scene.Stage) {
			s.Called("poll create")
			s.Advance(2 * time.Minute)
			s.Called("poll again", "poll again")
			s.Wrote()
		}},
		"an expression for a text, which another value moves": {polls(`"self.spec.ttl"`), func(s *scene.Stage) {
			s.Called("poll create")
			s.Advance(10 * time.Minute)
			s.Called("poll again")
			lives(s, "1h")
			s.Called("poll update")
			s.Advance(time.Hour)
			s.Called("poll again")
			s.Wrote()
		}},
		"a time until a moment": {polls(`"timestamp(self.metadata.creationTimestamp) + duration(self.spec.ttl) - now"`), func(s *scene.Stage) {
			s.Called("poll create")
			s.Advance(10*time.Minute - time.Second)
			s.Called()
			s.Advance(time.Second)
			s.Called("poll again")
		}},
		"nothing, where there is no time": {polls(`"self.spec.?every"`), func(s *scene.Stage) {
			s.Called("poll create")
			s.Advance(24 * time.Hour)
			s.Called()
		}},
		"a run that fails asks for nothing": {`{id: poll, causes: [create, update], runAgainAfter: 1h, retries: 0, log: {message: "${self.spec.missing}"}}`, func(s *scene.Stage) {
			s.Called("poll create")
			s.Advance(24 * time.Hour)
			s.Called()
		}},
		"text that is no time is a failure": {polls(`"self.metadata.name"`), func(s *scene.Stage) {
			s.Called("poll create")
			s.Advance(time.Second * 2)
			s.Called("poll create 2")
		}},
	} {
		t.Run(name, func(t *testing.T) { playAt(t, tt.handlers, tt.play) })
	}
}
