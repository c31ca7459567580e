// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestOwnMarksOfTheObjectGoWithIt holds that what a handler has patched of its own object does not outlive its use: a finalizer would hold
// the object for ever.
func TestOwnMarksOfTheObjectGoWithIt(t *testing.T) {
	const own = `{id: own, patch: {apiVersion: example.com/v1, kind: Foo, metadata: {name: "${self.metadata.name}", labels: {a: b}, finalizers: [example.org/mine]}}}`
	t.Run("a finalizer of a handler holds no deletion", func(t *testing.T) {
		scene.PlayVersions(t, func(v *scene.Versions) {
			v.Next(own)
			v.WantFinalizers(scene.Finalizer, "example.org/mine")
			v.Delete(scene.Foos, "default", "web")
			v.Advance(time.Minute)
			v.WantGone()
		})
	})
	t.Run("an object that leaves the selector loses all", func(t *testing.T) {
		scene.PlayVersions(t, func(v *scene.Versions) {
			v.Set("gold", "metadata", "labels", "tier")
			v.NextResources(`{resource: foos.v1.example.com, selector: {matchLabels: {tier: gold}}, handlers: [` + own + `]}`)
			v.WantFinalizers(scene.Finalizer, "example.org/mine")
			v.Set("lead", "metadata", "labels", "tier")
			v.Advance(time.Minute)
			v.WantFinalizers()
			v.WantField("metadata.labels.a", nil)
		})
	})
}
