// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestEveryWriteOfAPatchIsAmongThePrintedRights holds that an operator that patches writes nothing without a right that is printed,
// and that it comes to write each of these objects.
func TestEveryWriteOfAPatchIsAmongThePrintedRights(t *testing.T) {
	groups := map[string]string{"foos": "example.com", "configmaps": ""}
	tests := map[string]struct {
		play func(v *scene.Versions)
		want string
	}{
		"that succeeds, and is given back": {func(v *scene.Versions) {
			v.Next(zone())
			v.Settle()
			v.Delete(scene.Foos, "default", "web")
		}, "configmaps"},
		"that takes fields from others by force, and gives them back": {func(v *scene.Versions) {
			v.Apply("others", `{apiVersion: v1, kind: ConfigMap, metadata: {name: red, labels: {zone: "x"}}}`)
			v.Next(options(`force: true`))
			v.Settle()
			v.Delete(scene.Foos, "default", "web")
		}, "configmaps"},
		"that fails, and is mended": {func(v *scene.Versions) {
			v.Apply("others", `{apiVersion: v1, kind: ConfigMap, metadata: {name: red, labels: {zone: "x"}}}`)
			v.Next(zone())
			v.Advance(time.Hour)
			v.Apply("others", `{apiVersion: v1, kind: ConfigMap, metadata: {name: red, labels: {}}}`)
			v.Advance(time.Hour)
		}, "foos/status"},
		"of an object that is paused": {func(v *scene.Versions) {
			v.Next(zone())
			v.Settle()
			v.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
				o.SetAnnotations(map[string]string{"op.handwerk.dev/paused": "while we move"})
			})
		}, "foos/status"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersionsWithConditions(t, func(v *scene.Versions) {
				v.Create(red)
				tt.play(v)
				v.Settle()
				printed := rbac.Of(v.Operator, rbac.Settings{Namespace: scene.OpsNamespace})
				came := false
				for _, w := range v.Process.Writes() {
					resource, subresource, _ := strings.Cut(w.Resource, "/")
					if came = came || w.Resource == tt.want; !rbac.Has(printed, groups[resource], resource, subresource, w.Verb) {
						v.T.Errorf("no right is printed for: %s", w)
					}
				}
				if !came {
					v.T.Errorf("it has not written %s", tt.want)
				}
			})
		})
	}
}
