// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAnObjectThatIsMadeAgain holds what becomes of an object that is deleted and made again under its name.
func TestAnObjectThatIsMadeAgain(t *testing.T) {
	again := func(v *scene.Versions) {
		v.Delete(scene.ConfigMaps, "default", "red")
		v.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: red, labels: {zone: theirs}}}`)
	}
	for name, play := range map[string]func(v *scene.Versions){
		"it is left alone when the owner goes": func(v *scene.Versions) {
			again(v)
			v.Delete(scene.Foos, "default", "web")
			v.WantGone()
			wantZones(v, "red=theirs")
		},
		"it is another one, whose fields are a conflict": func(v *scene.Versions) {
			again(v)
			v.Advance(12 * time.Minute)
			v.WantLog("belongs to field manager")
			wantZones(v, "red=theirs")
		},
		"it has the fields at the next look": func(v *scene.Versions) {
			v.Delete(scene.ConfigMaps, "default", "red")
			v.Create(red)
			v.Advance(12 * time.Minute)
			wantZones(v, "red=1")
			v.Delete(scene.Foos, "default", "web")
			v.WantGone()
			wantZones(v)
		},
		"between the record and the request": func(v *scene.Versions) {
			v.Create(blue)
			v.DelayNext("patch", scene.ConfigMaps, time.Second)
			v.Set("blue", "spec", "color")
			v.Settle()
			v.Delete(scene.ConfigMaps, "default", "blue")
			v.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: blue, labels: {zone: theirs}}}`)
			v.Advance(time.Minute)
			wantZones(v, "blue=theirs")
		},
		"while its fields are given back": func(v *scene.Versions) {
			v.DelayNext("patch", scene.ConfigMaps, time.Second)
			v.Delete(scene.Foos, "default", "web")
			v.Settle()
			again(v)
			v.Advance(time.Minute)
			v.WantGone()
			wantZones(v, "red=theirs")
		},
	} {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersions(t, func(v *scene.Versions) {
				v.Create(red)
				v.NextResources(`{resource: foos.v1.example.com, resync: 10m, handlers: [` + zone() + `]}`)
				wantZones(v, "red=1")
				play(v)
			})
		})
	}
}

// TestWhatCannotBeGivenBackHoldsTheOwner holds that an owner waits until its fields are given back, says why, and goes on by itself.
func TestWhatCannotBeGivenBackHoldsTheOwner(t *testing.T) {
	const bar = `{id: zone, patch: {apiVersion: example.org/v1, kind: Bar, metadata: {name: red, labels: {zone: "1"}}}}`
	tests := map[string]struct {
		handler string
		begin   func(v *scene.Versions) (end func())
		says    string
	}{
		"a right is missing": {zone(), func(v *scene.Versions) func() {
			v.Forbid("patch", scene.ConfigMaps)
			return func() { v.Allow("patch", scene.ConfigMaps) }
		}, "forbidden"},
		"the right to read is missing": {zone(), func(v *scene.Versions) func() {
			v.Forbid("get", scene.ConfigMaps)
			return func() { v.Allow("get", scene.ConfigMaps) }
		}, "forbidden"},
		"a webhook refuses": {zone(), func(v *scene.Versions) func() {
			return v.Refuse(scene.ConfigMaps, func(o *unstructured.Unstructured) error {
				if o.GetName() == "red" {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "red", errors.New("the hook says no"))
				}
				return nil
			})
		}, "the hook says no"},
		"its group is broken": {bar, func(v *scene.Versions) func() {
			v.Withdraw(scene.Bars)
			return func() { v.Restore(scene.Bars) }
		}, "Bar"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersions(t, func(v *scene.Versions) {
				v.Create(red)
				v.Create(`{apiVersion: example.org/v1, kind: Bar, metadata: {name: red}}`)
				v.Next(tt.handler)
				v.Settle()
				v.WantFinalizers(scene.Finalizer)
				end := tt.begin(v)
				v.Delete(scene.Foos, "default", "web")
				v.Advance(10 * time.Minute)
				v.WantFinalizers(scene.Finalizer)
				v.WantLog("giving back fields of", tt.says)
				if len(scene.EventsAbout(v.Events(), "web", "DeletionHeld")) == 0 {
					v.T.Errorf("no Event says so: %v", v.Events())
				}
				end()
				v.Advance(10 * time.Minute)
				v.WantGone()
				wantZones(v)
				if o := v.Get(scene.Bars, "default", "red"); o.GetLabels()["zone"] != "" {
					v.T.Errorf("the Bar has %v", o.GetLabels())
				}
			})
		})
	}
	t.Run("but its CRD is gone", func(t *testing.T) {
		scene.PlayVersions(t, func(v *scene.Versions) {
			v.Create(`{apiVersion: example.org/v1, kind: Bar, metadata: {name: red}}`)
			v.Next(bar)
			v.Settle()
			v.WantFinalizers(scene.Finalizer)
			v.Unserve(scene.Bars)
			v.Delete(scene.Foos, "default", "web")
			v.Advance(10 * time.Minute)
			v.WantGone()
		})
	})
}

// TestSomebodyTakesAField holds that a field that another manager takes by force is not fought for without force, and is reported.
func TestSomebodyTakesAField(t *testing.T) {
	scene.PlayVersions(t, func(v *scene.Versions) {
		v.Create(red)
		v.NextResources(`{resource: foos.v1.example.com, resync: 10m, handlers: [` + zone() + `]}`)
		wantZones(v, "red=1")
		v.Apply("somebody", `{apiVersion: v1, kind: ConfigMap, metadata: {name: red, labels: {zone: theirs}}}`)
		v.Forget()
		v.Advance(2 * time.Hour)
		v.WantLog(`.metadata.labels.zone belongs to field manager`, "somebody")
		wantZones(v, "red=theirs")
		v.Delete(scene.Foos, "default", "web")
		v.WantGone()
		wantZones(v, "red=theirs")
	})
}

// TestTwoThatForceOneFieldComeToRest holds that two objects that force one field, and see each other's writes, are stopped.
func TestTwoThatForceOneFieldComeToRest(t *testing.T) {
	scene.PlayVersions(t, func(v *scene.Versions) {
		v.Create(red)
		v.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: other}, spec: {size: 2, color: red}}`)
		v.NextResources(`{resource: foos.v1.example.com, related: [{name: target, resource: configmaps.v1, object: "${self.spec.color}"}], handlers: [` + options("force: true") + `]}`)
		v.Advance(time.Hour)
		writes := 0
		for _, w := range v.Process.Writes() {
			if w.Resource == "configmaps" {
				writes++
			}
		}
		if writes > 200 {
			v.T.Errorf("they have written %d times within an hour", writes)
		}
	})
}

// TestWhatTheTemplateLacksIsGivenBack holds that fields that leave the template are given back, one by one.
func TestWhatTheTemplateLacksIsGivenBack(t *testing.T) {
	with := func(fields string) string {
		return `{id: one, patch: {apiVersion: v1, kind: ConfigMap, metadata: {name: red, labels: {zone: "1"}}, ` + fields + `}}`
	}
	scene.PlayVersions(t, func(v *scene.Versions) {
		v.Create(red)
		v.Next(with(`data: {x: "1", y: "2"}`))
		v.Settle()
		v.Next(with(`data: {y: "2"}`))
		v.Settle()
		v.Next(`{id: one, patch: {apiVersion: v1, kind: ConfigMap, metadata: {name: red}, data: {y: "2"}}}`)
		wantZones(v)
		data := v.Get(scene.ConfigMaps, "default", "red").Object["data"].(map[string]any)
		if len(data) != 2 || data["a"] != "b" || data["y"] != "2" {
			v.T.Errorf("the data is %v", data)
		}
	})
}

// TestACrashAtAnyRequest holds that a process that dies after any of its requests leaves nothing behind for good: neither a target without
// its fields, nor fields without an owner.
func TestACrashAtAnyRequest(t *testing.T) {
	for n := 1; n <= 6; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			scene.PlayVersions(t, func(v *scene.Versions) {
				v.Create(red)
				v.Create(blue)
				v.Next(scene.LabelsSeen)
				v.Settle()
				v.Next(zone())
				v.Process.CrashAfter(n)
				v.Settle()
				v.Set("blue", "spec", "color")
				v.Advance(time.Minute)
				v.Process.Restart()
				v.Advance(time.Minute)
				wantZones(v, "blue=1")
				v.Process.CrashAfter(n)
				v.Delete(scene.Foos, "default", "web")
				v.Advance(time.Minute)
				v.Process.Restart()
				v.Advance(time.Minute)
				v.WantGone()
				wantZones(v)
			})
		})
	}
}
