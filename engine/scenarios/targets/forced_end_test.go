// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAnOwnerThatLosesItsFinalizerByHand holds that fields are given back also of an owner that somebody lets go by force.
func TestAnOwnerThatLosesItsFinalizerByHand(t *testing.T) {
	release := func(v *scene.Versions) {
		v.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
	}
	for name, play := range map[string]func(v *scene.Versions){
		"in one go with its deletion": func(v *scene.Versions) {
			v.HoldWatches(scene.Foos)
			v.Delete(scene.Foos, "default", "web")
			release(v)
			v.ReleaseWatches(scene.Foos)
		},
		"while its fields cannot be given back": func(v *scene.Versions) {
			v.Forbid("patch", scene.ConfigMaps)
			v.Delete(scene.Foos, "default", "web")
			v.Advance(time.Minute)
			release(v)
			v.Advance(time.Minute)
			v.Allow("patch", scene.ConfigMaps)
		},
		"before it is deleted": func(v *scene.Versions) {
			release(v)
			v.Delete(scene.Foos, "default", "web")
		},
	} {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersions(t, func(v *scene.Versions) {
				v.Create(red)
				v.Next(zone())
				wantZones(v, "red=1")
				play(v)
				v.Advance(time.Hour)
				v.WantGone()
				wantZones(v)
			})
		})
	}
}
