// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAHandlerWithTheOppositeWhenTakesTheChildOver holds that it does so however the child is tied to its owner, there and back,
// and that there is nothing to do after that.
func TestAHandlerWithTheOppositeWhenTakesTheChildOver(t *testing.T) {
	for name, tie := range map[string]struct{ options, mark string }{
		"an owned child":            {"", ""},
		"a labelled child":          {"ownership: labelled, ", ""},
		"a child that is orphaned":  {"onDelete: orphan, ", ";orphan"},
		"a child that is retained":  {"onDelete: retain, ", ";retain"},
		"a child without ownership": {"ownership: none, ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersionsWithConditions(t, func(v *scene.Versions) {
				makes := func(id, when string) string {
					return scene.AppliesTemplates(id+", when: "+when, id+`: {`+tie.options+`template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}}}`)
				}
				v.Next(makes("app", "self.spec.size < 2"), makes("big", "self.spec.size > 1"))
				v.WantChildren("ConfigMap a of app/app" + tie.mark)
				for size, maker := range []string{"app", "app", "big", "big", "app"} {
					v.Resize(int64(size % 4))
					v.Advance(5 * time.Second)
					v.WantChildren("ConfigMap a of " + maker + "/" + maker + tie.mark)
				}
				v.Forget()
				v.Advance(time.Hour)
				v.Process.Restart()
				v.Advance(time.Hour)
				v.Wrote()
			})
		})
	}
}
