// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// record writes a record into web, as somebody does who may write web.
func record(v *scene.Versions, targets ...string) {
	v.T.Helper()
	list := ""
	for i, one := range targets {
		if i > 0 {
			list += ","
		}
		list += `"` + one + `"`
	}
	v.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{scene.RecordAnnotation: fmt.Sprintf(`{"handwerk":1,"uid":%q,"since":"2026-01-02T03:04:05Z","targets":[%s]}`, o.GetUID(), list)})
		o.SetFinalizers([]string{scene.Finalizer})
	})
}

// TestAForgedRecordTakesNothing holds that whoever may write an object cannot make the operator take fields off that the object's handlers
// have not set: not those of people, and not those of another object.
func TestAForgedRecordTakesNothing(t *testing.T) {
	for name, forge := range map[string]func(v *scene.Versions){
		"before the process starts": func(v *scene.Versions) {
			scene.Stop(v.Stage)
			record(v, "/ConfigMap/ops/green zone others", "/ConfigMap/default/blue zone op/patch/zone/"+string(v.Get(scene.Foos, "default", "other").GetUID()))
			v.Next(zone())
		},
		"while the process runs": func(v *scene.Versions) {
			record(v, "/ConfigMap/ops/green gone others", "/ConfigMap/default/blue gone op/patch/zone/"+string(v.Get(scene.Foos, "default", "other").GetUID()))
			v.Settle()
			v.Resize(2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersions(t, func(v *scene.Versions) {
				v.Create(red)
				v.Create(blue)
				v.Create(green)
				v.Apply("others", `{apiVersion: v1, kind: ConfigMap, metadata: {name: green, namespace: ops, labels: {zone: theirs}}}`)
				v.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: other}, spec: {size: 7, color: blue}}`)
				v.Next(zone())
				wantZones(v, "red=1", "blue=7", "green=theirs")
				forge(v)
				v.Advance(10 * time.Minute)
				v.Delete(scene.Foos, "default", "web")
				v.Advance(10 * time.Minute)
				v.WantGone()
				wantZones(v, "blue=7", "green=theirs")
			})
		})
	}
}

// TestACopiedRecordCountsForNothing holds that an object with the record of another one gives nothing of that one back.
func TestACopiedRecordCountsForNothing(t *testing.T) {
	scene.PlayVersions(t, func(v *scene.Versions) {
		v.Create(red)
		v.Next(zone())
		wantZones(v, "red=1")
		copied := v.Web()
		v.Create(map[string]any{
			"apiVersion": "example.com/v1", "kind": "Foo", "spec": map[string]any{"size": int64(5), "color": "green"},
			"metadata": map[string]any{"name": "copy", "namespace": "ops", "annotations": map[string]any{scene.RecordAnnotation: copied.GetAnnotations()[scene.RecordAnnotation]}, "finalizers": []any{scene.Finalizer}},
		})
		v.Advance(10 * time.Minute)
		wantZones(v, "red=1")
		v.Create(green)
		v.Advance(2 * time.Minute)
		wantZones(v, "red=1", "green=5")
		v.Delete(scene.Foos, "ops", "copy")
		v.Settle()
		if o := v.Get(scene.Foos, "ops", "copy"); o != nil {
			v.T.Errorf("the copy is still there: %v", o.Object["metadata"])
		}
		wantZones(v, "red=1")
	})
}
