// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAConditionWhoseWhenIsFalseStaysAsItIs holds that such a condition keeps what it says, and of which generation: it was not looked at for
// this one, so kubectl wait does not take it for an answer.
func TestAConditionWhoseWhenIsFalseStaysAsItIs(t *testing.T) {
	const handlers = `{id: a, set: {
		conditions: [{type: Small, status: "${self.spec.size < 5}", when: self.spec.size < 10}, {type: Sized, status: true}],
		status: {size: "${self.spec.size}", color: "${self.spec.color}"}, when: {status.size: self.spec.size < 10}}}`
	scene.PlayYAML(t, `{resource: foos.v1.example.com, handlers: [`+handlers+`]}`, func(s *scene.Stage) {
		s.Begin()
		s.WantCondition("Small", "True@1 Small: ")
		s.Resize(20)
		s.WantCondition("Small", "True@1 Small: ")
		s.WantCondition("Sized", "True@2 Sized: ")
		s.WantStatus(map[string]any{"size": int64(1)})
		s.Set("blue", "metadata", "annotations", "touched")
		s.Advance(time.Hour)
		s.WantCondition("Small", "True@1 Small: ")
		s.Forget()
		s.Process.Restart()
		s.Advance(time.Hour)
		s.Wrote()
		s.WantCondition("Small", "True@1 Small: ")
		s.Resize(7)
		s.WantCondition("Small", "False@3 NotSmall: ")
		s.WantStatus(map[string]any{"size": int64(7)})
		s.Set("x", "spec", "other") // the handler does not run for it
		s.Advance(time.Minute)
		s.WantCondition("Small", "False@4 NotSmall: ")
		s.WantCondition("Sized", "True@4 Sized: ")
	})
}

// TestReadyIsFalseWhileAnotherHandlerFails holds what outcomes are for: a condition of the author's own that is False while a handler fails, with
// the reason and the error, and Unknown while what it reads is not there.
func TestReadyIsFalseWhileAnotherHandlerFails(t *testing.T) {
	const handlers = `{id: app, set: {labels: {same: "${string(0 * (1 / (self.spec.size - 2)))}"}}},
		{id: status, set: {conditions: [
			{type: Ready, status: false, when: handlers.app.state != 'done', reason: Failing, message: "${handlers.app.message}"},
			{type: Known, status: "${self.status.seen == 'yes' && handlers.app.state == 'done'}", reason: Seen}]}}`
	scene.PlayYAML(t, `{resource: foos.v1.example.com, handlers: [`+handlers+`]}`, func(s *scene.Stage) {
		s.Begin()
		s.WantCondition("Ready")
		s.WantCondition("Known", "Unknown@1 Unresolved: Cannot be worked out: self.status is not set")
		s.Resize(2)
		s.WantCondition("Ready", "False@2 Failing: evaluating set.labels.same: division by zero")
		s.WantCondition("Known", "False@2 Seen: ")
		s.Wrote("patch foos/status default/web")
	})
}
