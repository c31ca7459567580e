// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"
)

// TestAppliedSumsUpSteps holds that a step which is through in the same attempt as one before it has heard what that one says now.
func TestAppliedSumsUpSteps(t *testing.T) {
	gated(t, func(v *versions) {
		v.version(`{id: app, steps: [{name: one, apply: {` + template("a", "readyWhen: self.spec.size > 1") + `}}, {name: two, apply: {` + template("b") + `}}]}`)
		v.condition("Applied", "False@1 Waiting: app.one: Waiting for ConfigMap default/a to be ready.")
		v.size(2)
		v.condition("AppOneApplied", "True@2 AllApplied: The child is applied.")
		v.condition("Applied", "True@2 AllApplied: All children are applied.")
		v.Forget()
		v.Process.Restart()
		v.Advance(time.Hour)
		v.Wrote()
	})
}
