// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAppliedSumsUpSteps holds that a step which is through in the same attempt as one before it has heard what that one
// says now.
func TestAppliedSumsUpSteps(t *testing.T) {
	scene.PlayVersionsWithConditions(t, func(v *scene.Versions) {
		v.Next(`{id: app, steps: [{name: one, apply: {` + scene.ConfigMapTemplate("a", "readyWhen: self.spec.size > 1") + `}}, {name: two, apply: {` + scene.ConfigMapTemplate("b") + `}}]}`)
		v.WantCondition("Applied", "False@1 Waiting: app.one: Waiting for ConfigMap default/a to be ready.")
		v.Resize(2)
		v.WantCondition("AppOneApplied", "True@2 AllApplied: The child is applied.")
		v.WantCondition("Applied", "True@2 AllApplied: All children are applied.")
		v.Forget()
		v.Process.Restart()
		v.Advance(time.Hour)
		v.Wrote()
	})
}
