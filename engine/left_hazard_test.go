// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestAFilterThatLooksAtWhatItsHandlerMakes holds that an object comes to rest whose filter becomes false by what its handler
// has made, and that the child stays.
func TestAFilterThatLooksAtWhatItsHandlerMakes(t *testing.T) {
	const child = `apply: {a: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}}`
	tests := map[string]string{
		"once it is there":          `{id: app, when: "!has(children.a.metadata)", ` + child,
		"as long as there are none": `{id: app, when: "size(children.a) == 0", ` + child,
		"in a step":                 `{id: app, steps: [{name: one, when: "!has(children.a.metadata)", ` + child + `]}`,
		"by way of the status": `{id: app, when: "!(self.?status.?done.orValue(false))", ` + child +
			`, {id: tells, set: {status: {done: "${has(children.a.metadata)}"}}}`,
		"of the object as a whole": `{id: app, when: "!ready(self)", ` + child +
			`, {id: tells, set: {conditions: [{type: Ready, status: "${has(children.a.metadata)}"}]}}`,
	}
	for name, handler := range tests {
		t.Run(name, func(t *testing.T) {
			gated(t, func(v *versions) {
				v.version(handler)
				v.Advance(time.Minute)
				if len(v.List(configMaps, "default")) != 1 {
					t.Errorf("the child is not there: %v", v.log.take())
				}
				v.Process.Restart() // what a handler has made is no news to it, so this may be when it is asked again
				v.Advance(time.Hour)
				v.Forget()
				v.Process.Restart()
				v.Advance(time.Hour)
				v.Wrote()
				if len(v.List(configMaps, "default")) != 1 {
					t.Errorf("the child is gone: %v", v.log.take())
				}
			})
		})
	}
}

// TestWhatIsLeftWhileHandlersAreNotThrough holds that what no handler has any more stays while one may want it, and goes
// in the end.
func TestWhatIsLeftWhileHandlersAreNotThrough(t *testing.T) {
	tests := map[string]func(v *versions){
		"a handler that takes it over cannot be asked": func(v *versions) {
			v.version(`{id: new, when: "1 / (self.spec.size - 1) > 0", apply: {b: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}}}`)
			v.has("Bar x of ", "ConfigMap b of old/b")
			v.set(map[string]any{"size": int64(2)}, "spec")
			v.has("Bar x of ", "ConfigMap b of new/b")
		},
		"a handler that takes it over looks at what is not known yet": func(v *versions) {
			end := v.down()
			v.resources(`{resource: foos.v1.example.com, related: [{name: all, resource: bars.v1.example.org, namespace: default, selector: {matchLabels: {of: all}}}],
				handlers: [{id: new, when: "size(related.all) > 0", apply: {b: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}}}]}`)
			v.Advance(time.Minute)
			v.has("Bar x of ", "ConfigMap b of old/b")
			end()
			v.Advance(10 * time.Minute)
			v.has("Bar x of ", "ConfigMap b of new/b")
		},
	}
	for name, play := range tests {
		t.Run(name, func(t *testing.T) {
			follow(t, func(v *versions) {
				v.Create(`{apiVersion: example.org/v1, kind: Bar, metadata: {name: x, labels: {of: all}}}`)
				v.version(childOf("old", "ConfigMap", "b"))
				v.Settle()
				play(v)
			})
		})
	}
}

// TestAFilterOverRelatedObjectsAtTheStart holds that a filter takes nothing away for related objects that are not known
// yet.
func TestAFilterOverRelatedObjectsAtTheStart(t *testing.T) {
	const of = `{resource: foos.v1.example.com, related: [{name: all, resource: bars.v1.example.org, namespace: default, selector: {matchLabels: {of: all}}}],
				handlers: [{id: new, when: "size(related.all) > 0", apply: {b: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}}}]}`
	follow(t, func(v *versions) {
		v.Create(`{apiVersion: example.org/v1, kind: Bar, metadata: {name: x, labels: {of: all}}}`)
		v.resources(of)
		v.has("Bar x of ", "ConfigMap b of new/b")
		end := v.down()
		v.resources(of)
		v.Advance(time.Minute)
		v.has("Bar x of ", "ConfigMap b of new/b")
		end()
		v.Advance(10 * time.Minute)
		v.has("Bar x of ", "ConfigMap b of new/b")
		v.Wrote()
	})
}

// TestWhatIsFoundWhileAHandlerFails holds that what is found of a kind that is not declared any more goes in the end,
// also when a handler fails as it is found.
func TestWhatIsFoundWhileAHandlerFails(t *testing.T) {
	follow(t, func(v *versions) {
		v.version(childOf("old", "Deployment", "b"))
		v.has("Deployment b of old/b")
		end := v.FailWhile("get", "configmaps", errors.New("it is down")) // the register cannot be read
		v.version(`{id: tells, set: {labels: {size: "${string(size(string(7 / (2 - self.spec.size))))}"}}}`)
		v.has("Deployment b of old/b")
		v.size(4)
		v.Advance(time.Second)
		v.size(2) // a handler fails
		end()
		v.Advance(2 * time.Minute)
		v.has("Deployment b of old/b")
		v.size(0)
		v.Advance(2 * time.Minute)
		v.has()
	})
}

// TestACopyOfAChildsAnnotations holds that what a controller makes of a child, with its annotations, is nobody's child
// for another resource of the operator.
func TestACopyOfAChildsAnnotations(t *testing.T) {
	follow(t, func(v *versions) {
		v.resources(`{resource: foos.v1.example.com, handlers: [` + childOf("app", "Bar", "a") + `]},
			{resource: bars.v1.example.org, owns: [deployments.v1.apps], handlers: [` + seesIt + `]}`)
		v.Settle()
		made := v.Get(bars, "default", "a")
		notes := made.GetAnnotations()
		copied := v.parsedCopy(made.GetUID(), notes)
		v.Apply("kube-controller-manager", copied)
		v.Advance(time.Minute)
		v.Process.Restart()
		v.Advance(time.Minute)
		v.has("Bar a of app/a", "Deployment copy of app/a")
	})
}

func (v *versions) parsedCopy(uid types.UID, notes map[string]string) map[string]any {
	all := map[string]any{}
	for k, n := range notes {
		all[k] = n
	}
	return map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{
		"name": "copy", "namespace": "default", "annotations": all,
		"ownerReferences": []any{map[string]any{"apiVersion": "example.org/v1", "kind": "Bar", "name": "a", "uid": string(uid), "controller": true}},
	}}
}

// down makes Bars unreadable until the end.
func (v *versions) down() (end func()) {
	list, watch := v.FailWhile("list", "bars.example.org", errors.New("it is down")), v.FailWhile("watch", "bars.example.org", errors.New("it is down"))
	return func() { list(); watch() }
}
