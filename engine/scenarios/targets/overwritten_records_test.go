// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestARecordThatIsOverwritten holds that fields are given back also where somebody has overwritten the record, as by an older export.
func TestARecordThatIsOverwritten(t *testing.T) {
	for name, overwrite := range map[string]func(o, before *unstructured.Unstructured){
		"by the object as it was before": func(o, before *unstructured.Unstructured) {
			o.SetAnnotations(before.GetAnnotations())
			o.SetFinalizers(before.GetFinalizers())
		},
		"without the annotation": func(o, _ *unstructured.Unstructured) { o.SetAnnotations(nil) },
		"by a text that is no record": func(o, _ *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{scene.RecordAnnotation: "{"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersions(t, func(v *scene.Versions) {
				v.Create(red)
				before := v.Web()
				v.Next(zone())
				wantZones(v, "red=1")
				v.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { overwrite(o, before) })
				v.Advance(time.Minute)
				v.WantFinalizers(scene.Finalizer)
				v.Process.Kill()
				v.Next(scene.LabelsSeen)
				v.Advance(time.Minute)
				wantZones(v)
			})
		})
	}
}

// TestALineThatIsNoTargetHidesNoOther holds that a target which nobody wants any more is given back also where somebody has written
// something else into the record while no process ran.
func TestALineThatIsNoTargetHidesNoOther(t *testing.T) {
	scene.PlayVersions(t, func(v *scene.Versions) {
		v.Create(red)
		v.Next(zone())
		wantZones(v, "red=1")
		scene.Stop(v.Stage)
		v.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
			text := o.GetAnnotations()[scene.RecordAnnotation]
			o.SetAnnotations(map[string]string{scene.RecordAnnotation: strings.Replace(text, `"targets":[`, `"targets":["nonsense",`, 1)})
		})
		v.Next(scene.LabelsSeen)
		v.Advance(time.Minute)
		v.WantLog("is not readable as a whole")
		wantZones(v)
	})
}
