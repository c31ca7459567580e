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
