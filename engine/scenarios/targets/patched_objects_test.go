// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// Objects to patch: web's color is red.
const (
	red   = `{apiVersion: v1, kind: ConfigMap, metadata: {name: red}, data: {a: b}}`
	blue  = `{apiVersion: v1, kind: ConfigMap, metadata: {name: blue}}`
	green = `{apiVersion: v1, kind: ConfigMap, metadata: {name: green, namespace: ops}}`
)

// recordWrite is the request that enters a target into web's record, and puts the finalizer on web.
const recordWrite = "patch foos default/web"

// template labels the ConfigMap that web's color names with web's size.
const template = `{apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.spec.color}", labels: {zone: "${string(self.spec.size)}"}}}`

// zone is a handler that patches, with further fields.
func zone(more ...string) string {
	return `{` + strings.Join(append([]string{`id: zone`, `patch: ` + template}, more...), ", ") + `}`
}

// options is a handler that patches with options.
func options(more ...string) string {
	return `{id: zone, patch: {` + strings.Join(append([]string{`template: ` + template}, more...), ", ") + `}}`
}

// wantZones fails the test unless the ConfigMaps have these labels, in the form of "red=1", and no other ConfigMap has one.
func wantZones(v *scene.Versions, want ...string) {
	v.T.Helper()
	v.Settle()
	var got []string
	for _, namespace := range []string{"default", scene.OpsNamespace} {
		for _, o := range v.List(scene.ConfigMaps, namespace) {
			if value, found := o.GetLabels()["zone"]; found {
				got = append(got, o.GetName()+"="+value)
			}
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.SortSlices(strings.Compare)); diff != "" {
		v.T.Errorf("labels (-want +got):\n%s", diff)
	}
}

// wantManagers fails the test unless these field managers own something of a ConfigMap by server-side apply. The uid of web is
// written as UID.
func wantManagers(v *scene.Versions, name string, want ...string) {
	v.T.Helper()
	v.Settle()
	var got []string
	for _, e := range v.Get(scene.ConfigMaps, "default", name).GetManagedFields() {
		if e.Operation == metav1.ManagedFieldsOperationApply {
			manager := e.Manager
			if web := v.Web(); web != nil {
				manager = strings.ReplaceAll(manager, string(web.GetUID()), "UID")
			}
			got = append(got, manager)
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.SortSlices(strings.Compare)); diff != "" {
		v.T.Errorf("managers of %s (-want +got):\n%s", name, diff)
	}
}

// TestAnObjectIsPatched holds what is written for an object that a handler patches, and when.
func TestAnObjectIsPatched(t *testing.T) {
	tests := map[string]func(v *scene.Versions){
		"the record and the finalizer come first, and one request patches": func(v *scene.Versions) {
			v.Next(zone())
			v.Wrote(recordWrite, "patch configmaps default/red")
			wantZones(v, "red=1")
			v.WantFinalizers(scene.Finalizer)
			wantManagers(v, "red", "op/patch/zone/UID")
		},
		"a restart writes nothing": func(v *scene.Versions) {
			v.Next(zone())
			v.Settle()
			v.Forget()
			v.Process.Restart()
			v.Wrote()
		},
		"a changed value costs one request": func(v *scene.Versions) {
			v.Next(zone())
			v.Settle()
			v.Forget()
			v.Resize(2)
			v.Wrote("patch configmaps default/red")
			wantZones(v, "red=2")
		},
		"what has the label with the same value is shared": func(v *scene.Versions) {
			v.Apply("others", `{apiVersion: v1, kind: ConfigMap, metadata: {name: red, labels: {zone: "1"}}}`)
			v.Next(zone())
			wantManagers(v, "red", "op/patch/zone/UID", "others")
			v.Delete(scene.Foos, "default", "web")
			v.WantGone()
			wantZones(v, "red=1")
		},
		"a missing object is not created, and patched when it comes": func(v *scene.Versions) {
			v.Delete(scene.ConfigMaps, "default", "red")
			v.Next(zone())
			v.Wrote()
			v.Create(red)
			v.Advance(time.Minute + time.Second)
			wantZones(v, "red=1")
		},
		"an object that vanishes before the request is not created": func(v *scene.Versions) {
			v.Next(zone())
			v.Settle()
			v.DelayNext("get", scene.ConfigMaps, time.Second)
			v.Resize(2)
			v.Settle()
			v.Delete(scene.ConfigMaps, "default", "red")
			v.Advance(time.Minute)
			if o := v.Get(scene.ConfigMaps, "default", "red"); o != nil {
				v.T.Errorf("it was created: %v", o.Object)
			}
		},
		"a crash before the request loses nothing": func(v *scene.Versions) {
			v.FailNext("patch", scene.ConfigMaps, errors.New("it is down"))
			v.Next(zone())
			v.Settle()
			v.WantFinalizers(scene.Finalizer)
			wantZones(v)
			v.Process.Kill()
			v.Next(zone())
			wantZones(v, "red=1")
		},
		"nothing is patched while the record cannot be written": func(v *scene.Versions) {
			end := v.FailWhile("patch", scene.Foos, errors.New("it is down"))
			v.Next(zone())
			v.Advance(time.Second)
			wantZones(v)
			end()
			v.Advance(time.Minute)
			wantZones(v, "red=1")
		},
		"drift is put back at the next look": func(v *scene.Versions) {
			v.NextResources(`{resource: foos.v1.example.com, resync: 10m, handlers: [` + zone() + `]}`)
			wantZones(v, "red=1")
			v.Update(scene.ConfigMaps, "default", "red", func(o *unstructured.Unstructured) { o.SetLabels(nil) })
			wantZones(v)
			v.Advance(12 * time.Minute)
			wantZones(v, "red=1")
		},
		"drift of a related object is put back at once": func(v *scene.Versions) {
			v.NextResources(`{resource: foos.v1.example.com, related: [{name: target, resource: configmaps.v1, object: "${self.spec.color}"}], handlers: [` +
				zone(`causes: [reconcile, related]`) + `]}`)
			wantZones(v, "red=1")
			v.Update(scene.ConfigMaps, "default", "red", func(o *unstructured.Unstructured) { o.SetLabels(nil) })
			wantZones(v, "red=1")
		},
	}
	for name, play := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersions(t, func(v *scene.Versions) {
				v.Create(red)
				v.Create(blue)
				play(v)
			})
		})
	}
}

// TestFieldsAreGivenBack holds when the fields of a patched object are given back.
func TestFieldsAreGivenBack(t *testing.T) {
	tests := map[string]func(v *scene.Versions){
		"when the owner is deleted": func(v *scene.Versions) {
			v.Delete(scene.Foos, "default", "web")
			v.WantGone()
			v.WantLog("gave back the fields of ConfigMap default/red")
			if o := v.Get(scene.ConfigMaps, "default", "red"); o.Object["data"].(map[string]any)["a"] != "b" {
				v.T.Errorf("what others have set is %v", o.Object["data"])
			}
		},
		"when the owner is deleted after the object": func(v *scene.Versions) {
			v.Delete(scene.ConfigMaps, "default", "red")
			v.Delete(scene.Foos, "default", "web")
			v.WantGone()
		},
		"when the owner was deleted while no process ran": func(v *scene.Versions) {
			scene.Stop(v.Stage)
			v.Delete(scene.Foos, "default", "web")
			v.Next(zone())
			v.Advance(10 * time.Second) // a deletion that came before the register was read is looked at again then
			v.WantGone()
		},
		"before the owner goes, and again until that succeeds": func(v *scene.Versions) {
			end := v.FailWhile("patch", scene.ConfigMaps, errors.New("it is down"))
			v.Delete(scene.Foos, "default", "web")
			v.Advance(time.Minute)
			v.WantFinalizers(scene.Finalizer)
			end()
			v.Advance(10 * time.Minute)
			v.WantGone()
		},
		"when another object is wanted, which is patched first": func(v *scene.Versions) {
			v.Forget()
			v.Set("blue", "spec", "color")
			v.Wrote(recordWrite, "patch configmaps default/blue", "patch configmaps default/red")
			wantZones(v, "blue=1")
			v.Delete(scene.Foos, "default", "web")
			v.WantGone()
		},
		"when another object is wanted that does not exist": func(v *scene.Versions) {
			v.Set("yellow", "spec", "color")
		},
		"when the configuration has no such handler": func(v *scene.Versions) {
			v.Next(scene.LabelsSeen)
			v.Settle()
			v.WantLog("there is no handler zone any more")
			v.WantFinalizers()
		},
		"when the handler does something else": func(v *scene.Versions) {
			v.Next(`{id: zone, set: {labels: {seen: "yes"}}}`)
			v.Settle()
			v.WantFinalizers()
		},
		"when includeWhen is false": func(v *scene.Versions) {
			v.Next(zone(`includeWhen: self.spec.size < 2`))
			wantZones(v, "red=1")
			v.Resize(2)
			wantZones(v)
			v.WantFinalizers()
			v.Resize(1)
			wantZones(v, "red=1")
			v.Resize(2)
		},
		"when the handler's labels turn the owner away": func(v *scene.Versions) {
			v.Set("gold", "metadata", "labels", "tier")
			v.Next(zone(`labels: {tier: gold}`))
			wantZones(v, "red=1")
			v.Set("lead", "metadata", "labels", "tier")
		},
		"when the owner leaves the selector": func(v *scene.Versions) {
			v.Set("gold", "metadata", "labels", "tier")
			v.NextResources(`{resource: foos.v1.example.com, selector: {matchLabels: {tier: gold}}, handlers: [` + zone() + `]}`)
			wantZones(v, "red=1")
			v.Set("lead", "metadata", "labels", "tier")
			wantZones(v)
			v.WantFinalizers()
		},
		"but not while when is false": func(v *scene.Versions) {
			v.Next(zone(`when: self.spec.size < 2`))
			v.Resize(2)
			wantZones(v, "red=1")
			v.Delete(scene.Foos, "default", "web")
			v.WantGone()
		},
	}
	for name, play := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersions(t, func(v *scene.Versions) {
				v.Create(red)
				v.Create(blue)
				v.Next(zone())
				wantZones(v, "red=1")
				play(v)
				wantZones(v)
			})
		})
	}
}

// TestARenamedHandlerKeepsItsTargets holds that a handler with another id takes its targets over without taking the fields off.
func TestARenamedHandlerKeepsItsTargets(t *testing.T) {
	scene.PlayVersions(t, func(v *scene.Versions) {
		v.Create(red)
		v.Next(zone())
		wantZones(v, "red=1")
		v.Next(`{id: place, was: zone, patch: ` + template + `}`)
		v.Wrote(recordWrite, "patch configmaps default/red", "patch configmaps default/red")
		wantZones(v, "red=1")
		wantManagers(v, "red", "op/patch/place/UID")
	})
}

// TestARenamedHandlerChangesItsFields holds that a handler with another id and other values has no conflict with itself.
func TestARenamedHandlerChangesItsFields(t *testing.T) {
	scene.PlayVersions(t, func(v *scene.Versions) {
		v.Create(red)
		v.Next(zone())
		wantZones(v, "red=1")
		v.Next(`{id: place, was: zone, patch: {apiVersion: v1, kind: ConfigMap, metadata: {name: red, labels: {zone: other}}}}`)
		wantZones(v, "red=other")
		wantManagers(v, "red", "op/patch/place/UID")
	})
}

// TestOthersFieldsAreAConflict holds that fields of others are taken by force alone.
func TestOthersFieldsAreAConflict(t *testing.T) {
	theirs := func(v *scene.Versions) {
		v.Apply("somebody", `{apiVersion: v1, kind: ConfigMap, metadata: {name: red, labels: {zone: theirs}}}`)
	}
	t.Run("without force it fails, and says whose they are", func(t *testing.T) {
		scene.PlayVersionsWithConditions(t, func(v *scene.Versions) {
			v.Create(red)
			theirs(v)
			v.Next(options(`force: false`))
			wantZones(v, "red=theirs")
			v.WantLog(`patching ConfigMap default/red: .metadata.labels.zone belongs to field manager \"somebody\"; force: true takes what others own`)
			v.Update(scene.ConfigMaps, "default", "red", func(o *unstructured.Unstructured) { o.SetLabels(nil) })
			v.Advance(10 * time.Minute)
			wantZones(v, "red=1")
		})
	})
	t.Run("with force they are taken", func(t *testing.T) {
		scene.PlayVersions(t, func(v *scene.Versions) {
			v.Create(red)
			theirs(v)
			v.Next(options(`force: true`))
			wantZones(v, "red=1")
			v.Delete(scene.Foos, "default", "web")
			v.WantGone()
			wantZones(v, "red=theirs")
			wantManagers(v, "red", "somebody")
		})
	})
}
