// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why_test

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/engine/why"
)

// TestHistory holds what is kept of the passes over an object, in order.
func TestHistory(t *testing.T) {
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, _ *enginetest.Journal) {
			foo.Lifecycle = dsl.OneByOne
			foo.OnReconcile("first", scene.Succeeds)
			foo.OnReconcile("second", scene.Succeeds)
		},
		Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Settle()
			s.Advance(time.Minute)
			s.Resize(5)
			s.Settle()
			got := answerTo(s, why.Question{Resource: "foos", Namespace: "default", Name: "web", History: true})
			t.Log(got)
			wantLine(s, got, "handler second was not chosen by the resource's lifecycle: other handlers go first")
			wantLine(s, got, "spec.size: from 1 to 5")
		},
	})
}
