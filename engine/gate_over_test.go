// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"
)

// TestAHandlerWithTheOppositeWhenTakesTheChildOver holds that it does so however the child is tied to its owner, there and back,
// and that there is nothing to do after that.
func TestAHandlerWithTheOppositeWhenTakesTheChildOver(t *testing.T) {
	for name, tie := range map[string]struct{ options, mark string }{
		"an owned child":           {"", ""},
		"a labelled child":         {"ownership: labelled, ", ""},
		"a child that is orphaned": {"onDelete: orphan, ", ";orphan"},
		"a child that is retained": {"onDelete: retain, ", ";retain"},
		"a child of nobody's":      {"ownership: none, ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			gated(t, func(v *versions) {
				makes := func(id, when string) string {
					return applies(id+", when: "+when, id+`: {`+tie.options+`template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}}}`)
				}
				v.version(makes("app", "self.spec.size < 2"), makes("big", "self.spec.size > 1"))
				v.has("ConfigMap a of app/app" + tie.mark)
				for size, maker := range []string{"app", "app", "big", "big", "app"} {
					v.size(int64(size % 4))
					v.Advance(5 * time.Second)
					v.has("ConfigMap a of " + maker + "/" + maker + tie.mark)
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
