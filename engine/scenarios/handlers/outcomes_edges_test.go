// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"slices"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// later is a handler that fails until its object is ten seconds old, and never writes.
const later = `{id: app, backoff: {initial: 4s, max: 4s}, log: {message: "${string(1 / (now - timestamp(self.metadata.creationTimestamp) > duration('10s') ? 1 : 0))}"}}`

// TestAFilterThatReadsAnOutcomeIsAskedWhenThatChanges holds that a handler which waits by its when for another one runs when that is
// through, also if it stands before that one and is not level-triggered, and though nothing was written.
func TestAFilterThatReadsAnOutcomeIsAskedWhenThatChanges(t *testing.T) {
	for name, tells := range map[string]string{
		"a handler of creates":   `{id: tells, causes: [create], when: handlers.app.state == 'done', log: {message: hello}}`,
		"a level-triggered one":  `{id: tells, when: handlers.app.state == 'done', log: {message: hello}}`,
		"by a let":               `{id: tells, let: {up: handlers.app.state == 'done'}, causes: [create], when: up, log: {message: hello}}`,
		"in the when of a patch": `{id: tells, when: handlers.app.state == 'done', patch: {apiVersion: v1, kind: ConfigMap, metadata: {name: gone}, data: {a: b}}}`,
	} {
		for place, handlers := range map[string]string{"after it": later + ", " + tells, "before it": tells + ", " + later} {
			t.Run(name+" "+place, func(t *testing.T) {
				outcomes(t, handlers, func(s *scene.Stage) {
					s.Launch()
					s.Create(scene.Web)
					s.Advance(10 * time.Second)
					if slices.Contains(s.Take(), "tells create") {
						t.Error("it runs before the other one is through")
					}
					s.Advance(10 * time.Second)
					if calls := s.Take(); len(calls) < 2 || calls[0][:3] != "app" || calls[1][:5] != "tells" {
						t.Errorf("calls: %v", calls)
					}
				})
			})
		}
	}
}

// TestAPatchTakesWhatCameOfAnotherHandler holds that fields of another object follow an outcome that they read by a let, wherever the
// handlers stand.
func TestAPatchTakesWhatCameOfAnotherHandler(t *testing.T) {
	const tells = `{id: tells, let: {up: handlers.app.state == 'done', why: "up ? 'well' : handlers.app.state"}, patch: {apiVersion: v1, kind: ConfigMap, metadata: {name: target}, data: {app: "${why}"}}}`
	for place, handlers := range map[string]string{"after it": app + ", " + tells, "before it": tells + ", " + app} {
		t.Run(place, func(t *testing.T) {
			outcomes(t, handlers, func(s *scene.Stage) {
				s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: target}}`)
				s.Begin()
				says := func(want string) {
					t.Helper()
					s.Advance(time.Second / 2)
					if got := scene.ValueAt(s.Get("configmaps.v1", "default", "target"), "data.app"); got != want {
						t.Errorf("the target says %v, want %s", got, want)
					}
				}
				says("well")
				s.Resize(2)
				says("failed")
				s.Process.Restart()
				says("failed")
				s.Resize(3)
				says("well")
				s.Forget()
				s.Process.Restart()
				s.Advance(time.Hour)
				s.Wrote()
			})
		})
	}
}

// TestAHandlerThatReadsOneThatComesAfterItRests holds that a handler which reads the outcome of one that has it in after comes to rest,
// when it succeeds and when it fails.
func TestAHandlerThatReadsOneThatComesAfterItRests(t *testing.T) {
	const reads = `{id: says, set: {status: {app: "${handlers.app.state}"}, labels: {same: "${string(0 * (1 / (self.spec.size - 2)))}"}}}`
	outcomes(t, reads+`, {id: app, after: [says], log: {message: hello}}`, func(s *scene.Stage) {
		s.Begin()
		s.WantStatus(map[string]any{"app": "done"})
		s.Resize(2)
		s.Advance(10 * time.Minute)
		if n := len(s.Take()); n > 15 {
			t.Errorf("%d runs in ten minutes of failures", n)
		}
		s.Resize(3)
		s.Advance(time.Second)
		s.WantStatus(map[string]any{"app": "done"})
		s.Forget()
		s.Advance(time.Hour)
		s.Called()
		s.Wrote()
	})
}
