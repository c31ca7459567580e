// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package upgrades_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAKindIsRegisteredBeforeItsFirstChild holds that the kinds of children are registered before the first child is made of
// one, and that it costs nothing afterwards.
func TestAKindIsRegisteredBeforeItsFirstChild(t *testing.T) {
	tests := map[string]func(v *scene.Versions){
		"a kind is registered before its first child, once": func(v *scene.Versions) {
			v.Next(scene.AppliesChild("app", "ConfigMap", "a"), scene.AppliesChild("more", "Deployment", "b"))
			v.Wrote("create configmaps ops/op-children", "patch configmaps default/a", "update configmaps ops/op-children", "patch deployments default/b")
			v.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: other, namespace: another}}`)
			v.Wrote("patch configmaps another/a", "patch deployments another/b")
			v.WantRegistered("ConfigMap", "Deployment.apps")
		},
		"a restart asks for nothing": func(v *scene.Versions) {
			v.Next(scene.AppliesChild("app", "ConfigMap", "a"))
			v.Forget()
			v.Process.Restart()
			v.Wrote()
		},
		"what is registered already is not written": func(v *scene.Versions) {
			v.Apply("op", `{apiVersion: v1, kind: ConfigMap, metadata: {name: op-children, namespace: ops}, data: {foos.example.com: "ConfigMap\n"}}`)
			v.Next(scene.AppliesChild("app", "ConfigMap", "a"))
			v.Wrote("patch configmaps default/a")
		},
		"a register that was emptied counts when a kind is registered again": func(v *scene.Versions) {
			// The API server drops data without keys, and a manager without fields with it.
			v.Load(`{apiVersion: v1, kind: ConfigMap, metadata: {name: op-children, namespace: ops, uid: emptied, creationTimestamp: "2030-01-01T00:00:00Z"}}`)
			v.Next(scene.AppliesChild("app", "ConfigMap", "a"))
			v.Wrote("update configmaps ops/op-children", "patch configmaps default/a")
			v.WantRegistered("ConfigMap")
			v.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: other, namespace: another}}`)
			v.Wrote("patch configmaps another/a")
		},
		"what others have registered stays": func(v *scene.Versions) {
			v.Next(scene.AppliesChild("app", "ConfigMap", "a"))
			v.Update(scene.ConfigMaps, scene.OpsNamespace, "op-children", scene.SetField("Secret\n", "data", "others.example.com"))
			v.FailNext("patch", "deployments.apps", errors.New("it is down"))
			v.NextResources(`{resource: foos.v1.example.com, handlers: [` + scene.AppliesChild("app", "ConfigMap", "a") + `, ` + scene.AppliesChild("more", "Deployment", "b") + `]}`)
			v.Advance(time.Minute)
			v.WantRegistered("ConfigMap", "Deployment.apps")
			data := v.Get(scene.ConfigMaps, scene.OpsNamespace, "op-children").Object["data"].(map[string]any)
			if data["others.example.com"] != "Secret\n" {
				v.T.Errorf("the register is %v", data)
			}
		},
		"a write that comes in between is kept": func(v *scene.Versions) {
			v.Next(scene.AppliesChild("app", "ConfigMap", "a"), `{id: more, when: self.spec.size > 1, apply: {b: {apiVersion: apps/v1, kind: Deployment, metadata: {name: b}}}}`)
			v.Apply("op", `{apiVersion: v1, kind: ConfigMap, metadata: {name: op-children, namespace: ops}, data: {foos.example.com: "ConfigMap\nSecret\n"}}`)
			v.Resize(2)
			v.WantChildren("ConfigMap a of app/a", "Deployment b of more/b")
			v.WantRegistered("ConfigMap", "Deployment.apps", "Secret")
		},
		"a child is not made while its kind cannot be registered": func(v *scene.Versions) {
			end := v.FailWhile("create", "configmaps", errors.New("it is down"))
			v.Next(scene.AppliesChild("app", "Deployment", "a"))
			v.Advance(time.Minute)
			v.WantChildren()
			end()
			v.Advance(10 * time.Minute)
			v.WantChildren("Deployment a of app/a")
			v.WantRegistered("Deployment.apps")
		},
		"without the right to it, children are made as ever, and it is said": func(v *scene.Versions) {
			v.Forbid("create", "configmaps", scene.OpsNamespace)
			v.Next(scene.AppliesChild("app", "Deployment", "a"))
			v.WantChildren("Deployment a of app/a")
			v.WantLog("kinds of children cannot be registered", "operator rbac prints the roles")
			v.Advance(time.Minute)
			v.WantLog("right is missing", "create configmaps in namespace ops")
			v.Allow("create", "configmaps", scene.OpsNamespace)
			v.Advance(time.Hour)
			v.Resize(2)
			v.WantRegistered("Deployment.apps")
		},
		"children of before there was a register are found at first sight, and not written": func(v *scene.Versions) {
			v.NextUnregistered(scene.AppliesChild("app", "Deployment", "a"))
			v.Next(scene.AppliesChild("app", "Deployment", "a"))
			v.Wrote("create configmaps ops/op-children")
			v.WantRegistered("Deployment.apps")
		},
		"also where their handler does not come to them": func(v *scene.Versions) {
			v.NextUnregistered(scene.AppliesChild("app", "Deployment", "a"))
			v.Next(`{id: app, when: "self.spec.size > 1", causes: [create], apply: {a: {apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}}}`)
			v.Wrote("create configmaps ops/op-children")
		},
		"what is not owned is not registered": func(v *scene.Versions) {
			v.Next(scene.AppliesChild("app", "ConfigMap", "a", "ownership: none"))
			v.WantChildren("ConfigMap a of app/a")
			v.WantRegistered()
		},
		"outside a namespace there is none": func(v *scene.Versions) {
			v.NextUnregistered(scene.AppliesChild("app", "Deployment", "a"))
			v.WantRegistered()
		},
	}
	for name, play := range tests {
		t.Run(name, func(t *testing.T) { scene.PlayVersions(t, play) })
	}
}

// TestChildrenOfRetiredKindsGo holds that children of kinds that no handler makes any more are found and taken away,
// and that the search ends when none is left.
func TestChildrenOfRetiredKindsGo(t *testing.T) {
	first := []string{scene.AppliesChild("app", "ConfigMap", "a"), scene.AppliesChild("old", "Deployment", "b")}
	tests := map[string]func(v *scene.Versions){
		"the handler is there no more": func(v *scene.Versions) {
			v.Next(scene.AppliesChild("app", "ConfigMap", "a"))
			v.WantChildren("ConfigMap a of app/a")
			v.WantLog("deleted Deployment default/b: there is no handler old any more")
			v.WantRegistered("ConfigMap")
			v.Wrote("delete deployments default/b", "update configmaps ops/op-children")
		},
		"the handler makes another kind": func(v *scene.Versions) {
			v.Next(scene.AppliesChild("app", "ConfigMap", "a"), scene.AppliesChild("old", "Service", "b"))
			v.WantChildren("ConfigMap a of app/a", "Service b of old/b")
			v.WantRegistered("ConfigMap", "Service")
		},
		"the handler makes none any more": func(v *scene.Versions) {
			v.Next(scene.AppliesChild("app", "ConfigMap", "a"), `{id: old, set: {labels: {seen: "yes"}}}`)
			v.WantChildren("ConfigMap a of app/a")
			v.WantRegistered("ConfigMap")
		},
		"no handler makes any": func(v *scene.Versions) {
			v.Next(scene.LabelsSeen)
			v.WantChildren()
			v.WantRegistered()
		},
		"a version in between that could not": func(v *scene.Versions) {
			v.Forbid("list", "deployments.apps")
			v.Forbid("watch", "deployments.apps")
			v.Next(scene.LabelsSeen)
			v.WantChildren("Deployment b of old/b")
			v.WantRegistered("Deployment.apps")
			v.Allow("list", "deployments.apps")
			v.Allow("watch", "deployments.apps")
			v.Next(scene.LabelsSeen)
			v.WantChildren()
			v.WantRegistered()
		},
		"the right to delete is missing": func(v *scene.Versions) {
			v.Forbid("delete", "deployments.apps")
			v.Next(scene.LabelsSeen)
			v.WantChildren("Deployment b of old/b")
			v.WantLog("removing children without a handler is forbidden", "cannot delete")
			v.Allow("delete", "deployments.apps")
			v.Advance(2 * time.Minute)
			v.WantChildren()
			v.WantRegistered()
		},
		"a failure is tried again": func(v *scene.Versions) {
			v.FailNext("delete", "deployments.apps", errors.New("it is down"))
			v.Next(scene.LabelsSeen)
			v.Advance(time.Minute)
			v.WantChildren()
			v.WantRegistered()
		},
		"what is held by a finalizer is waited for": func(v *scene.Versions) {
			v.Update(scene.Deployments, "default", "b", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"a.example.com/b"}) })
			v.Next(scene.LabelsSeen)
			v.WantRegistered("Deployment.apps")
			v.Update(scene.Deployments, "default", "b", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			v.WantChildren()
			v.WantRegistered()
		},
		"an object of somebody else is left": func(v *scene.Versions) {
			v.Create(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: theirs, annotations: {op.handwerk.dev/child: old/x, op.handwerk.dev/applied: hw1:x}}}`)
			v.Next(scene.LabelsSeen)
			v.WantChildren("Deployment theirs of old/x")
			v.WantRegistered()
		},
		"the register cannot be read at first": func(v *scene.Versions) {
			end := v.FailWhile("get", "configmaps", errors.New("it is down"))
			v.Next(scene.LabelsSeen)
			v.WantChildren("Deployment b of old/b", "ConfigMap a of app/a")
			end()
			v.Advance(2 * time.Minute)
			v.WantChildren()
		},
		"the kind comes back": func(v *scene.Versions) {
			v.Forbid("delete", "deployments.apps")
			v.Next(scene.AppliesChild("app", "ConfigMap", "a"))
			v.Allow("delete", "deployments.apps")
			v.Next(first...)
			v.WantChildren("ConfigMap a of app/a", "Deployment b of old/b")
			v.WantRegistered("ConfigMap", "Deployment.apps")
		},
	}
	for name, play := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersions(t, func(v *scene.Versions) {
				v.Next(first...)
				v.WantChildren("ConfigMap a of app/a", "Deployment b of old/b")
				v.WantRegistered("ConfigMap", "Deployment.apps")
				play(v)
			})
		})
	}
}

// TestAChildOfNoHandlerGoesAsItsPolicySays holds that what no handler has any more goes as its annotation says.
func TestAChildOfNoHandlerGoesAsItsPolicySays(t *testing.T) {
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
			scene.PlayVersions(t, func(v *scene.Versions) {
				v.Next(scene.AppliesChild("old", "Deployment", "b", test.more...))
				v.Next(scene.LabelsSeen)
				v.WantChildren(test.want...)
				v.WantRegistered(test.left...)
			})
		})
	}
}

// TestAKindWithoutACRDHasNoChildren holds that a kind whose CRD is gone counts as empty, and one that is not served for a
// while does not.
func TestAKindWithoutACRDHasNoChildren(t *testing.T) {
	scene.PlayVersions(t, func(v *scene.Versions) {
		v.Next(scene.AppliesChild("old", "Bar", "b"), scene.AppliesChild("app", "ConfigMap", "a"))
		v.WantRegistered("Bar.example.org", "ConfigMap")
		v.Withdraw(scene.Bars)
		v.Next(scene.AppliesChild("app", "ConfigMap", "a"))
		v.Advance(time.Minute)
		v.WantRegistered("Bar.example.org", "ConfigMap")
		v.Restore(scene.Bars)
		v.Unserve(scene.Bars)
		v.Advance(time.Minute)
		v.WantRegistered("ConfigMap")
	})
}

// TestChildrenOfARemovedHandlerGo holds what becomes of children whose kind is there still.
func TestChildrenOfARemovedHandlerGo(t *testing.T) {
	app := scene.AppliesChild("app", "ConfigMap", "a")
	tests := map[string]struct {
		before, after []string
		want          []string
	}{
		"one is taken out": {[]string{app, scene.AppliesChild("old", "ConfigMap", "b")}, []string{app}, []string{"ConfigMap a of app/a"}},
		"one is renamed": {[]string{app, scene.AppliesChild("old", "ConfigMap", "b")}, []string{app, scene.AppliesChild("new", "ConfigMap", "b")},
			[]string{"ConfigMap a of app/a", "ConfigMap b of new/b"}},
		"a step is taken out": {
			[]string{`{id: app, steps: [{name: one, apply: {a: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}}, {name: two, apply: {b: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}}}]}`},
			[]string{`{id: app, steps: [{name: one, apply: {a: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}}, {name: three, set: {labels: {seen: "yes"}}}]}`},
			[]string{"ConfigMap a of app.one/a"},
		},
		"nothing goes while a handler fails": {[]string{app, scene.AppliesChild("old", "ConfigMap", "b")},
			[]string{app, `{id: bad, set: {labels: {x: "${string(1 / (self.spec.size - 1))}"}}}`}, []string{"ConfigMap a of app/a", "ConfigMap b of old/b"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersions(t, func(v *scene.Versions) {
				v.Next(test.before...)
				v.Next(test.after...)
				v.WantChildren(test.want...)
				v.Forget()
				v.Process.Restart()
				v.Wrote()
			})
		})
	}
}

// TestChildrenOfARemovedHandlerGoWithTheirOwner holds that children that only the operator deletes go with their owner
// though no handler has them any more.
func TestChildrenOfARemovedHandlerGoWithTheirOwner(t *testing.T) {
	scene.PlayVersions(t, func(v *scene.Versions) {
		v.Next(scene.AppliesChild("old", "ConfigMap", "b", "ownership: labelled"))
		if err := v.Process.Stop(); err != nil {
			t.Error(err)
		}
		v.Remove()
		v.Next(scene.LabelsSeen)
		v.Advance(time.Minute)
		v.WantChildren()
		if o := v.Web(); o != nil {
			t.Errorf("the owner is there: %v", o)
		}
	})
}

// TestARemovedResourceIsLoggedOnce holds that it is logged, once, which children there may be.
func TestARemovedResourceIsLoggedOnce(t *testing.T) {
	scene.PlayVersions(t, func(v *scene.Versions) {
		v.Next(scene.AppliesChild("app", "Deployment", "a"))
		v.NextResources(`{resource: bars.v1.example.org, handlers: [` + scene.LabelsSeen + `]}`)
		v.WantLog("resource is no longer in the configuration", `"resource"="foos.example.com"`, "Deployment.apps")
		v.WantChildren("Deployment a of app/a")
	})
}

// TestARenamedHandlerKeepsItsChildren holds that what is kept under an id that a handler had before is its own.
func TestARenamedHandlerKeepsItsChildren(t *testing.T) {
	const at = `{id: %s, %s causes: [create], when: self.spec.size < 2, apply: {b: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}}}`
	handler := func(id, was string) string { return fmt.Sprintf(at, id, was) }
	tests := map[string]struct {
		after string
		want  []string
	}{
		"its children are its own":                     {handler("new", "was: old,"), []string{"ConfigMap b of old/b"}},
		"of one of several ids, too":                   {handler("new", "was: [older, old],"), []string{"ConfigMap b of old/b"}},
		"without was they belong to no handler":        {handler("new", ""), nil},
		"what it makes no more it takes away":          {`{id: new, was: old, apply: {c: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}}`, []string{"ConfigMap c of new/c"}},
		"what it makes still is brought up to date":    {`{id: new, was: old, apply: {b: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}}}`, []string{"ConfigMap b of new/b"}},
		"what it makes in another place is made there": {`{id: new, was: old, apply: {b: {apiVersion: v1, kind: ConfigMap, metadata: {name: other}}}}`, []string{"ConfigMap other of new/b"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersions(t, func(v *scene.Versions) {
				v.Next(handler("old", ""))
				v.WantChildren("ConfigMap b of old/b")
				uid := v.Get(scene.ConfigMaps, "default", "b").GetUID()
				if err := v.Process.Stop(); err != nil {
					t.Error(err)
				}
				v.Resize(2) // so that its filter does not hold
				v.Next(test.after)
				v.WantChildren(test.want...)
				if o := v.Get(scene.ConfigMaps, "default", "b"); o != nil && o.GetUID() != uid {
					t.Error("the child was recreated")
				}
			})
		})
	}
}

// TestStepsAreRenamedWithTheirHandler holds that steps are renamed with their handler.
func TestStepsAreRenamedWithTheirHandler(t *testing.T) {
	const steps = `{id: %s, %s steps: [{name: one, apply: {a: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}}, {name: two, set: {labels: {seen: "yes"}}}]}`
	scene.PlayVersions(t, func(v *scene.Versions) {
		v.Next(fmt.Sprintf(steps, "old", ""))
		v.WantChildren("ConfigMap a of old.one/a")
		v.Next(fmt.Sprintf(steps, "new", "was: old,"))
		v.WantChildren("ConfigMap a of new.one/a")
		v.Wrote("patch configmaps default/a")
	})
}

// TestARenamedHandlerDoesNotRunAgain holds that a handler that was renamed with was does not run again for what it has
// handled.
func TestARenamedHandlerDoesNotRunAgain(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
		version := func(id string, options ...dsl.Option) *scene.Stage {
			s := scene.NewStage(t, c)
			s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
				foo.OnCreate(id, s.Note(id), options...)
				foo.OnUpdate("change", s.Note("change"), dsl.Field("spec.size"))
			})
			s.Launch()
			return s
		}
		s := version("old")
		s.Create(scene.Web)
		s.Called("old create")
		_ = s.Process.Stop()
		s = version("new", dsl.Was("old"))
		s.Called()
		_ = s.Process.Stop()
	})
}
