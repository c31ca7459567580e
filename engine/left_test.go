// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

// TestKindsAreRegistered holds that the kinds of children are registered before the first child is made of one, and that
// it costs nothing afterwards.
func TestKindsAreRegistered(t *testing.T) {
	tests := map[string]func(v *versions){
		"a kind is registered before its first child, once": func(v *versions) {
			v.version(childOf("app", "ConfigMap", "a"), childOf("more", "Deployment", "b"))
			v.Wrote("create configmaps ops/op-children", "patch configmaps default/a", "update configmaps ops/op-children", "patch deployments default/b")
			v.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: other, namespace: another}}`)
			v.Wrote("patch configmaps another/a", "patch deployments another/b")
			v.registered("ConfigMap", "Deployment.apps")
		},
		"a restart asks for nothing": func(v *versions) {
			v.version(childOf("app", "ConfigMap", "a"))
			v.Forget()
			v.Process.Restart()
			v.Wrote()
		},
		"what is registered already is not written": func(v *versions) {
			v.Apply("op", `{apiVersion: v1, kind: ConfigMap, metadata: {name: op-children, namespace: ops}, data: {foos.example.com: "ConfigMap\n"}}`)
			v.version(childOf("app", "ConfigMap", "a"))
			v.Wrote("patch configmaps default/a")
		},
		"what others have registered stays": func(v *versions) {
			v.version(childOf("app", "ConfigMap", "a"))
			v.Update(configMaps, inOps, "op-children", func(o *unstructured.Unstructured) { v.setField(o, "Secret\n", "data", "others.example.com") })
			v.FailNext("patch", "deployments.apps", errors.New("it is down"))
			v.resources(`{resource: foos.v1.example.com, handlers: [` + childOf("app", "ConfigMap", "a") + `, ` + childOf("more", "Deployment", "b") + `]}`)
			v.Advance(time.Minute)
			v.registered("ConfigMap", "Deployment.apps")
			data := v.Get(configMaps, inOps, "op-children").Object["data"].(map[string]any)
			if data["others.example.com"] != "Secret\n" {
				v.t.Errorf("the register is %v", data)
			}
		},
		"a write that comes in between is kept": func(v *versions) {
			v.version(childOf("app", "ConfigMap", "a"), `{id: more, when: self.spec.size > 1, apply: {b: {apiVersion: apps/v1, kind: Deployment, metadata: {name: b}}}}`)
			v.Apply("op", `{apiVersion: v1, kind: ConfigMap, metadata: {name: op-children, namespace: ops}, data: {foos.example.com: "ConfigMap\nSecret\n"}}`)
			v.size(2)
			v.has("ConfigMap a of app/a", "Deployment b of more/b")
			v.registered("ConfigMap", "Deployment.apps", "Secret")
		},
		"a child is not made while its kind cannot be registered": func(v *versions) {
			end := v.FailWhile("create", "configmaps", errors.New("it is down"))
			v.version(childOf("app", "Deployment", "a"))
			v.Advance(time.Minute)
			v.has()
			end()
			v.Advance(10 * time.Minute)
			v.has("Deployment a of app/a")
			v.registered("Deployment.apps")
		},
		"without the right to it, children are made as ever, and it is said": func(v *versions) {
			v.Forbid("create", "configmaps", inOps)
			v.version(childOf("app", "Deployment", "a"))
			v.has("Deployment a of app/a")
			v.says("kinds of children cannot be registered", "operator rbac prints the roles")
			v.Advance(time.Minute)
			v.says("right is missing", "create configmaps in namespace ops")
			v.Allow("create", "configmaps", inOps)
			v.Advance(time.Hour)
			v.size(2)
			v.registered("Deployment.apps")
		},
		"children of before there was a register are found at first sight, and not written": func(v *versions) {
			v.unregistered(childOf("app", "Deployment", "a"))
			v.version(childOf("app", "Deployment", "a"))
			v.Wrote("create configmaps ops/op-children")
			v.registered("Deployment.apps")
		},
		"also where their handler does not come to them": func(v *versions) {
			v.unregistered(childOf("app", "Deployment", "a"))
			v.version(`{id: app, when: "self.spec.size > 1", causes: [create], apply: {a: {apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}}}`)
			v.Wrote("create configmaps ops/op-children")
		},
		"what is not owned is not registered": func(v *versions) {
			v.version(childOf("app", "ConfigMap", "a", "ownership: none"))
			v.has("ConfigMap a of app/a")
			v.registered()
		},
		"outside a namespace there is none": func(v *versions) {
			v.unregistered(childOf("app", "Deployment", "a"))
			v.registered()
		},
	}
	for name, play := range tests {
		t.Run(name, func(t *testing.T) { follow(t, play) })
	}
}

// TestKindsThatAreDeclaredNoMore holds that children of kinds that no handler makes any more are found and taken away,
// and that the search ends when none is left.
func TestKindsThatAreDeclaredNoMore(t *testing.T) {
	first := []string{childOf("app", "ConfigMap", "a"), childOf("old", "Deployment", "b")}
	tests := map[string]func(v *versions){
		"the handler is there no more": func(v *versions) {
			v.version(childOf("app", "ConfigMap", "a"))
			v.has("ConfigMap a of app/a")
			v.says("deleted Deployment default/b: there is no handler old any more")
			v.registered("ConfigMap")
			v.Wrote("delete deployments default/b", "update configmaps ops/op-children")
		},
		"the handler makes another kind": func(v *versions) {
			v.version(childOf("app", "ConfigMap", "a"), childOf("old", "Service", "b"))
			v.has("ConfigMap a of app/a", "Service b of old/b")
			v.registered("ConfigMap", "Service")
		},
		"the handler makes none any more": func(v *versions) {
			v.version(childOf("app", "ConfigMap", "a"), `{id: old, set: {labels: {seen: "yes"}}}`)
			v.has("ConfigMap a of app/a")
			v.registered("ConfigMap")
		},
		"no handler makes any": func(v *versions) {
			v.version(seesIt)
			v.has()
			v.registered()
		},
		"a version in between that could not": func(v *versions) {
			v.Forbid("list", "deployments.apps")
			v.Forbid("watch", "deployments.apps")
			v.version(seesIt)
			v.has("Deployment b of old/b")
			v.registered("Deployment.apps")
			v.Allow("list", "deployments.apps")
			v.Allow("watch", "deployments.apps")
			v.version(seesIt)
			v.has()
			v.registered()
		},
		"the right to delete is missing": func(v *versions) {
			v.Forbid("delete", "deployments.apps")
			v.version(seesIt)
			v.has("Deployment b of old/b")
			v.says("removing children without a handler is forbidden", "cannot delete")
			v.Allow("delete", "deployments.apps")
			v.Advance(2 * time.Minute)
			v.has()
			v.registered()
		},
		"a failure is tried again": func(v *versions) {
			v.FailNext("delete", "deployments.apps", errors.New("it is down"))
			v.version(seesIt)
			v.Advance(time.Minute)
			v.has()
			v.registered()
		},
		"what is held by a finalizer is waited for": func(v *versions) {
			v.Update(deployments, "default", "b", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"a.example.com/b"}) })
			v.version(seesIt)
			v.registered("Deployment.apps")
			v.Update(deployments, "default", "b", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			v.has()
			v.registered()
		},
		"an object of somebody else is left": func(v *versions) {
			v.Create(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: theirs, annotations: {op.handwerk.dev/child: old/x, op.handwerk.dev/applied: hw1:x}}}`)
			v.version(seesIt)
			v.has("Deployment theirs of old/x")
			v.registered()
		},
		"the register cannot be read at first": func(v *versions) {
			end := v.FailWhile("get", "configmaps", errors.New("it is down"))
			v.version(seesIt)
			v.has("Deployment b of old/b", "ConfigMap a of app/a")
			end()
			v.Advance(2 * time.Minute)
			v.has()
		},
		"the kind comes back": func(v *versions) {
			v.Forbid("delete", "deployments.apps")
			v.version(childOf("app", "ConfigMap", "a"))
			v.Allow("delete", "deployments.apps")
			v.version(first...)
			v.has("ConfigMap a of app/a", "Deployment b of old/b")
			v.registered("ConfigMap", "Deployment.apps")
		},
	}
	for name, play := range tests {
		t.Run(name, func(t *testing.T) {
			follow(t, func(v *versions) {
				v.version(first...)
				v.has("ConfigMap a of app/a", "Deployment b of old/b")
				v.registered("ConfigMap", "Deployment.apps")
				play(v)
			})
		})
	}
}

// TestPoliciesOfWhatIsLeft holds that what no handler has any more goes as its annotation says.
func TestPoliciesOfWhatIsLeft(t *testing.T) {
	tests := map[string]struct {
		more []string
		want []string
		left []string
	}{
		"deleted":                     {nil, nil, nil},
		"labelled ones, too":          {[]string{"ownership: labelled"}, nil, nil},
		"cut loose":                   {[]string{"onDelete: orphan"}, []string{"Deployment b of "}, nil},
		"retained, and looked for on": {[]string{"onDelete: retain"}, []string{"Deployment b of old/b;retain"}, []string{"Deployment.apps"}},
		"left where it was not owned": {[]string{"ownership: none"}, []string{"Deployment b of old/b"}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			follow(t, func(v *versions) {
				v.version(childOf("old", "Deployment", "b", test.more...))
				v.version(seesIt)
				v.has(test.want...)
				v.registered(test.left...)
			})
		})
	}
}

// TestAKindThatIsGone holds that a kind whose CRD is gone counts as empty, and one that is not served for a while does
// not.
func TestAKindThatIsGone(t *testing.T) {
	follow(t, func(v *versions) {
		v.version(childOf("old", "Bar", "b"), childOf("app", "ConfigMap", "a"))
		v.registered("Bar.example.org", "ConfigMap")
		v.Withdraw(bars)
		v.version(childOf("app", "ConfigMap", "a"))
		v.Advance(time.Minute)
		v.registered("Bar.example.org", "ConfigMap")
		v.Restore(bars)
		v.Unserve(bars)
		v.Advance(time.Minute)
		v.registered("ConfigMap")
	})
}

// TestHandlersThatAreThereNoMore holds what becomes of children whose kind is there still.
func TestHandlersThatAreThereNoMore(t *testing.T) {
	app := childOf("app", "ConfigMap", "a")
	tests := map[string]struct {
		before, after []string
		want          []string
	}{
		"one is taken out": {[]string{app, childOf("old", "ConfigMap", "b")}, []string{app}, []string{"ConfigMap a of app/a"}},
		"one is renamed": {[]string{app, childOf("old", "ConfigMap", "b")}, []string{app, childOf("new", "ConfigMap", "b")},
			[]string{"ConfigMap a of app/a", "ConfigMap b of new/b"}},
		"a step is taken out": {
			[]string{`{id: app, steps: [{name: one, apply: {a: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}}, {name: two, apply: {b: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}}}]}`},
			[]string{`{id: app, steps: [{name: one, apply: {a: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}}, {name: three, set: {labels: {seen: "yes"}}}]}`},
			[]string{"ConfigMap a of app.one/a"},
		},
		"nothing goes while a handler fails": {[]string{app, childOf("old", "ConfigMap", "b")},
			[]string{app, `{id: bad, set: {labels: {x: "${string(1 / (self.spec.size - 1))}"}}}`}, []string{"ConfigMap a of app/a", "ConfigMap b of old/b"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			follow(t, func(v *versions) {
				v.version(test.before...)
				v.version(test.after...)
				v.has(test.want...)
				v.Forget()
				v.Process.Restart()
				v.Wrote()
			})
		})
	}
}

// TestAnOwnerIsDeletedMeanwhile holds that children that nobody but the operator deletes go with their owner though no
// handler has them any more.
func TestAnOwnerIsDeletedMeanwhile(t *testing.T) {
	follow(t, func(v *versions) {
		v.version(childOf("old", "ConfigMap", "b", "ownership: labelled"))
		if err := v.Process.Stop(); err != nil {
			t.Error(err)
		}
		v.remove()
		v.version(seesIt)
		v.Advance(time.Minute)
		v.has()
		if o := v.web(); o != nil {
			t.Errorf("the owner is there: %v", o)
		}
	})
}

// TestAResourceThatIsThereNoMore holds that it is said, once, of which children there may be.
func TestAResourceThatIsThereNoMore(t *testing.T) {
	follow(t, func(v *versions) {
		v.version(childOf("app", "Deployment", "a"))
		v.resources(`{resource: bars.v1.example.org, handlers: [` + seesIt + `]}`)
		v.says("resource is no longer in the configuration", `"resource"="foos.example.com"`, "Deployment.apps")
		v.has("Deployment a of app/a")
	})
}

// TestARenamedHandler holds that what is kept under an id that a handler had before is its own.
func TestARenamedHandler(t *testing.T) {
	const at = `{id: %s, %s causes: [create], when: self.spec.size < 2, apply: {b: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}}}`
	handler := func(id, was string) string { return fmt.Sprintf(at, id, was) }
	tests := map[string]struct {
		after string
		want  []string
	}{
		"its children are its own":                     {handler("new", "was: old,"), []string{"ConfigMap b of old/b"}},
		"of one of several ids, too":                   {handler("new", "was: [older, old],"), []string{"ConfigMap b of old/b"}},
		"without was they are those of nobody":         {handler("new", ""), nil},
		"what it makes no more it takes away":          {`{id: new, was: old, apply: {c: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}}`, []string{"ConfigMap c of new/c"}},
		"what it makes still is brought up to date":    {`{id: new, was: old, apply: {b: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}}}`, []string{"ConfigMap b of new/b"}},
		"what it makes in another place is made there": {`{id: new, was: old, apply: {b: {apiVersion: v1, kind: ConfigMap, metadata: {name: other}}}}`, []string{"ConfigMap other of new/b"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			follow(t, func(v *versions) {
				v.version(handler("old", ""))
				v.has("ConfigMap b of old/b")
				uid := v.Get(configMaps, "default", "b").GetUID()
				if err := v.Process.Stop(); err != nil {
					t.Error(err)
				}
				v.size(2) // so that its filter does not hold
				v.version(test.after)
				v.has(test.want...)
				if o := v.Get(configMaps, "default", "b"); o != nil && o.GetUID() != uid {
					t.Error("the child was made anew")
				}
			})
		})
	}
}

// TestStepsOfARenamedHandler holds that steps are renamed with their handler.
func TestStepsOfARenamedHandler(t *testing.T) {
	const steps = `{id: %s, %s steps: [{name: one, apply: {a: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}}, {name: two, set: {labels: {seen: "yes"}}}]}`
	follow(t, func(v *versions) {
		v.version(fmt.Sprintf(steps, "old", ""))
		v.has("ConfigMap a of old.one/a")
		v.version(fmt.Sprintf(steps, "new", "was: old,"))
		v.has("ConfigMap a of new.one/a")
		v.Wrote("patch configmaps default/a")
	})
}

// TestWhatARenamedHandlerHasHandled holds that a handler that was renamed with was does not run again for what it has
// handled.
func TestWhatARenamedHandlerHasHandled(t *testing.T) {
	enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
		c.Serve(enginetest.Resource{Name: foos, Kind: "Foo"})
		version := func(id string, options ...dsl.Option) *stage {
			s := newStage(t, c)
			s.Operator.Resource(foos, func(foo *dsl.Resource) {
				foo.OnCreate(id, s.Note(id), options...)
				foo.OnUpdate("change", s.Note("change"), dsl.Field("spec.size"))
			})
			s.Launch()
			return s
		}
		s := version("old")
		s.Create(web)
		s.Called("old create")
		_ = s.Process.Stop()
		s = version("new", dsl.Was("old"))
		s.Called()
		_ = s.Process.Stop()
	})
}
