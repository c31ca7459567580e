// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package timers_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAnObjectThatDeletesItselfAtItsTimeIsGone holds that nothing fails for it, and that the deletion is the only request: the object
// that is gone gets no progress.
func TestAnObjectThatDeletesItselfAtItsTimeIsGone(t *testing.T) {
	const expire = `{id: expire, at: "timestamp(self.metadata.creationTimestamp) + duration(self.spec.ttl)", `
	for name, handler := range map[string]string{
		"as a handler": expire + `delete: "${self}"}`,
		"as a step":    expire + `steps: [{log: {message: bye}}, {delete: "${self}"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			playAt(t, handler, func(s *scene.Stage) {
				s.Advance(10 * time.Minute)
				s.WantGone()
				s.Called("expire timer")
				s.Wrote("delete foos default/web")
				s.Advance(time.Hour)
				s.Called()
			})
		})
	}
	t.Run("where somebody else holds it", func(t *testing.T) {
		playAt(t, expire+`delete: "${self}"}`, func(s *scene.Stage) {
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/theirs"}) })
			s.Advance(10 * time.Minute)
			s.Called("expire timer")
			s.Wrote("delete foos default/web")
			s.Process.Restart()
			s.Advance(time.Hour)
			s.Called()
			s.Wrote()
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			s.WantGone()
		})
	})
}

// TestATimeFarAway holds that a time past what a clock can wait for does not make passes.
func TestATimeFarAway(t *testing.T) {
	playAt(t, `{id: expire, at: "timestamp('9999-12-31T23:59:59Z')", log: {message: over}}`, func(s *scene.Stage) {
		s.Advance(24 * time.Hour)
		s.Called()
		s.Wrote()
	})
}

// TestATimeOfTheYearOneHasPassed holds that the zero time of Go's clients, which is a time of the object, is not taken for none.
func TestATimeOfTheYearOneHasPassed(t *testing.T) {
	for name, at := range map[string]string{
		"as a time":  `timestamp('0001-01-01T00:00:00Z')`,
		"as text":    `'0001-01-01T00:00:00Z'`,
		"a year two": `'0002-01-01T00:00:00Z'`,
	} {
		t.Run(name, func(t *testing.T) {
			playAt(t, `{id: expire, at: "`+at+`", log: {message: over}}`, func(s *scene.Stage) {
				s.Advance(time.Minute)
				s.Called("expire timer")
				s.Process.Restart()
				s.Advance(24 * time.Hour)
				s.Called()
			})
		})
	}
	t.Run("null is no time", func(t *testing.T) {
		playAt(t, `{id: expire, at: "null", log: {message: over}}`, func(s *scene.Stage) {
			s.Advance(24 * time.Hour)
			s.Called()
		})
	})
}
