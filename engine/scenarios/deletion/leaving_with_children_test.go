// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package deletion_test

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAnObjectThatLeavesIsLetGoWhenItsChildrenAreGone holds that an object which leaves the selector keeps the finalizer no longer than it
// has labelled children: the event of a child that goes is not lost, though a reconcile over the object that has left is under way.
func TestAnObjectThatLeavesIsLetGoWhenItsChildrenAreGone(t *testing.T) {
	const text = `{resource: foos.v1.example.com, selector: {matchLabels: {tier: gold}}, handlers: [
		{id: keep, apply: {settings: {ownership: labelled, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: elsewhere}}}}}]}`
	for name, wait := range map[string]time.Duration{"the answer comes at once": 0, "the answer to the deletion comes late": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			scene.PlayYAML(t, text, func(s *scene.Stage) {
				s.CreateElsewhere()
				s.Launch()
				s.Create(scene.GoldWeb)
				s.Advance(time.Minute)
				s.WantFinalizers(scene.Finalizer)
				if wait > 0 {
					s.DelayNext("delete", scene.ConfigMaps, wait)
				}
				s.LabelTier("lead")
				s.Advance(wait + time.Second)
				if s.Get(scene.ConfigMaps, "elsewhere", "settings") != nil {
					t.Error("the child is there")
				}
				s.WantFinalizers()
				s.Take()
			})
		})
	}
}
