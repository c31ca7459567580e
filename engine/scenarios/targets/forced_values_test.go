// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestForcedValues holds which value comes back when others write between a forced patch and its end.
func TestForcedValues(t *testing.T) {
	set := func(v *scene.Versions, change func(o *unstructured.Unstructured)) {
		v.Update(scene.ConfigMaps, "default", "red", change)
	}
	zoneIs := func(value string) func(o *unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"zone": value}) }
	}
	forced := `{resource: foos.v1.example.com, resync: 10m, handlers: [` + options(`force: true`) + `]}`
	tests := map[string]struct {
		play func(v *scene.Versions)
		want []string
		log  string
	}{
		"a value that changes before it is taken": {func(v *scene.Versions) {
			v.DelayNext("patch", scene.ConfigMaps, time.Second)
			v.NextResources(forced)
			v.Settle()
			set(v, zoneIs("later"))
			v.Advance(time.Minute)
		}, []string{"red=later"}, ""},
		"a value that is taken twice": {func(v *scene.Versions) {
			v.NextResources(forced)
			v.Settle()
			set(v, zoneIs("later"))
			v.Advance(12 * time.Minute)
		}, []string{"red=later"}, ""},
		"a note that somebody writes": {func(v *scene.Versions) {
			v.NextResources(forced)
			v.Settle()
			set(v, func(o *unstructured.Unstructured) {
				notes := o.GetAnnotations()
				for key := range notes {
					notes[key] = "x"
				}
				o.SetAnnotations(notes)
			})
		}, nil, "the note of replaced values does not count"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersions(t, func(v *scene.Versions) {
				v.Create(red)
				set(v, zoneIs("theirs"))
				tt.play(v)
				wantZones(v, "red=1")
				v.Delete(scene.Foos, "default", "web")
				v.WantGone()
				wantZones(v, tt.want...)
				if tt.log != "" {
					v.WantLog(tt.log)
				}
			})
		})
	}
}
