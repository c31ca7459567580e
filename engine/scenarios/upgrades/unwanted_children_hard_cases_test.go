// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package upgrades_test

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAnObjectRestsWhoseFilterReadsItsOwnChild holds that an object comes to rest whose filter becomes false by what its handler
// has made, and that the child stays.
func TestAnObjectRestsWhoseFilterReadsItsOwnChild(t *testing.T) {
	const child = `apply: {a: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}}`
	tests := map[string]string{
		"once it is there":          `{id: app, when: "!has(children.a.metadata)", ` + child,
		"as long as there are none": `{id: app, when: "size(children.a) == 0", ` + child,
		"in a step":                 `{id: app, steps: [{name: one, when: "!has(children.a.metadata)", ` + child + `]}`,
		"by way of the status": `{id: app, when: "!(self.?status.?done.orValue(false))", ` + child +
			`, {id: report, set: {status: {done: "${has(children.a.metadata)}"}}}`,
		"of the object as a whole": `{id: app, when: "!ready(self)", ` + child +
			`, {id: report, set: {conditions: [{type: Ready, status: "${has(children.a.metadata)}"}]}}`,
	}
	for name, handler := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersionsWithConditions(t, func(v *scene.Versions) {
				v.Next(handler)
				v.Advance(time.Minute)
				if len(v.List(scene.ConfigMaps, "default")) != 1 {
					t.Errorf("the child is not there: %v", v.Log.Take())
				}
				v.Process.Restart() // what a handler has made is no news to it, so this may be when it is asked again
				v.Advance(time.Hour)
				v.Forget()
				v.Process.Restart()
				v.Advance(time.Hour)
				v.Wrote()
				if len(v.List(scene.ConfigMaps, "default")) != 1 {
					t.Errorf("the child is gone: %v", v.Log.Take())
				}
			})
		})
	}
}

// TestAChildOfNoHandlerStaysUntilHandlersAreThrough holds that what no handler has any more stays while one may want it, and goes
// in the end.
func TestAChildOfNoHandlerStaysUntilHandlersAreThrough(t *testing.T) {
	tests := map[string]func(v *scene.Versions){
		"a handler that takes it over cannot be asked": func(v *scene.Versions) {
			v.Next(`{id: new, when: "1 / (self.spec.size - 1) > 0", apply: {b: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}}}`)
			v.WantChildren("Bar x of ", "ConfigMap b of old/b")
			v.Set(map[string]any{"size": int64(2)}, "spec")
			v.WantChildren("Bar x of ", "ConfigMap b of new/b")
		},
		"a handler that takes it over looks at what is not known yet": func(v *scene.Versions) {
			end := v.MakeBarsUnreadable()
			v.NextResources(`{resource: foos.v1.example.com, related: [{name: all, resource: bars.v1.example.org, namespace: default, selector: {matchLabels: {of: all}}}],
				handlers: [{id: new, when: "size(related.all) > 0", apply: {b: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}}}]}`)
			v.Advance(time.Minute)
			v.WantChildren("Bar x of ", "ConfigMap b of old/b")
			end()
			v.Advance(10 * time.Minute)
			v.WantChildren("Bar x of ", "ConfigMap b of new/b")
		},
	}
	for name, play := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersions(t, func(v *scene.Versions) {
				v.Create(`{apiVersion: example.org/v1, kind: Bar, metadata: {name: x, labels: {of: all}}}`)
				v.Next(scene.AppliesChild("old", "ConfigMap", "b"))
				v.Settle()
				play(v)
			})
		})
	}
}

// TestAFilterOverUnknownRelatedObjectsDeletesNoChild holds that a filter takes nothing away for related objects that are not
// known yet.
func TestAFilterOverUnknownRelatedObjectsDeletesNoChild(t *testing.T) {
	const of = `{resource: foos.v1.example.com, related: [{name: all, resource: bars.v1.example.org, namespace: default, selector: {matchLabels: {of: all}}}],
				handlers: [{id: new, when: "size(related.all) > 0", apply: {b: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}}}]}`
	scene.PlayVersions(t, func(v *scene.Versions) {
		v.Create(`{apiVersion: example.org/v1, kind: Bar, metadata: {name: x, labels: {of: all}}}`)
		v.NextResources(of)
		v.WantChildren("Bar x of ", "ConfigMap b of new/b")
		end := v.MakeBarsUnreadable()
		v.NextResources(of)
		v.Advance(time.Minute)
		v.WantChildren("Bar x of ", "ConfigMap b of new/b")
		end()
		v.Advance(10 * time.Minute)
		v.WantChildren("Bar x of ", "ConfigMap b of new/b")
		v.Wrote()
	})
}

// TestAChildOfARetiredKindGoesThoughAHandlerFails holds that what is found of a kind that is not declared any more goes in
// the end, also when a handler fails as it is found.
func TestAChildOfARetiredKindGoesThoughAHandlerFails(t *testing.T) {
	scene.PlayVersions(t, func(v *scene.Versions) {
		v.Next(scene.AppliesChild("old", "Deployment", "b"))
		v.WantChildren("Deployment b of old/b")
		end := v.FailWhile("get", "configmaps", errors.New("it is down")) // the register cannot be read
		v.Next(`{id: report, set: {labels: {size: "${string(size(string(7 / (2 - self.spec.size))))}"}}}`)
		v.WantChildren("Deployment b of old/b")
		v.Resize(4)
		v.Advance(time.Second)
		v.Resize(2) // a handler fails
		end()
		v.Advance(2 * time.Minute)
		v.WantChildren("Deployment b of old/b")
		v.Resize(0)
		v.Advance(2 * time.Minute)
		v.WantChildren()
	})
}

// TestACopyOfAChildsAnnotationsMakesNoChild holds that what a controller makes of a child, with its annotations, is no one's
// child for another resource of the operator.
func TestACopyOfAChildsAnnotationsMakesNoChild(t *testing.T) {
	scene.PlayVersions(t, func(v *scene.Versions) {
		v.NextResources(`{resource: foos.v1.example.com, handlers: [` + scene.AppliesChild("app", "Bar", "a") + `]},
			{resource: bars.v1.example.org, owns: [deployments.v1.apps], handlers: [` + scene.LabelsSeen + `]}`)
		v.Settle()
		made := v.Get(scene.Bars, "default", "a")
		copied := &unstructured.Unstructured{Object: scene.OwnedObject(made, "apps/v1", "Deployment", "copy")}
		copied.SetNamespace("default")
		copied.SetAnnotations(made.GetAnnotations())
		v.Apply("kube-controller-manager", copied)
		v.Advance(time.Minute)
		v.Process.Restart()
		v.Advance(time.Minute)
		v.WantChildren("Bar a of app/a", "Deployment copy of app/a")
	})
}
