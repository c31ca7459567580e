// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package causes_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestALevelTriggeredHandlerRunsForWhatItDidNotSee is law 1 for filters: what others did to the object, or beside
// it, while the handler did not see it is put right when it does.
func TestALevelTriggeredHandlerRunsForWhatItDidNotSee(t *testing.T) {
	const (
		active = `{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {active: true}}`
		toggle = `{resource: foos.v1.example.com, handlers: [{id: on, when: self.spec.active, set: {status: {seen: "on"}}},
			{id: off, when: "!self.spec.active", set: {status: {seen: "off"}}}]}`
		paused = `{resource: foos.v1.example.com, owns: [deployments.v1.apps], related: [{name: settings, resource: configmaps.v1, object: settings}], handlers: [
			{id: app, when: "!self.spec.paused", apply: {web: {onDelete: retain, template: {
				apiVersion: apps/v1, kind: Deployment, metadata: {name: "${self.metadata.name}"}, spec: {replicas: 1}}}}},
			{id: look, when: "!self.spec.paused", set: {status: {seen: "${related.settings.data.level}"}}}]}`
	)
	t.Run("two handlers of one field, where one sees it at a time", func(t *testing.T) {
		scene.PlayYAML(t, toggle, func(s *scene.Stage) {
			s.Launch()
			s.Create(active)
			for _, on := range []bool{false, true, false, true} {
				s.Set(on, "spec", "active")
				s.Settle()
				if got, want := scene.ValueAt(s.Web(), "status.seen"), map[bool]string{true: "on", false: "off"}[on]; got != want {
					t.Errorf("spec.active is %v, and status.seen %v", on, got)
				}
			}
			s.Forget()
			s.Advance(time.Hour)
			s.Called()
			s.Wrote()
		})
	})
	for name, between := range map[string]func(s *scene.Stage){
		"a child that is deleted meanwhile": func(s *scene.Stage) { s.Delete(scene.Deployments, "default", "web") },
		"a child that is changed meanwhile": func(s *scene.Stage) {
			s.Update(scene.Deployments, "default", "web", func(o *unstructured.Unstructured) {
				o.Object["spec"].(map[string]any)["replicas"] = int64(7)
			})
		},
		"a related object that is changed meanwhile": func(s *scene.Stage) {
			s.Update(scene.ConfigMaps, "default", "settings", func(o *unstructured.Unstructured) {
				o.Object["data"] = map[string]any{"level": "high"}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			scene.PlayYAML(t, paused, func(s *scene.Stage) {
				s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {level: low}}`)
				s.Launch()
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {paused: false}}`)
				s.Settle()
				s.Set(true, "spec", "paused")
				s.Settle()
				between(s)
				s.Settle()
				s.Take()
				s.Advance(time.Minute)
				s.Called()
				s.Set(false, "spec", "paused")
				s.Settle()
				d := s.Get(scene.Deployments, "default", "web")
				if d == nil || scene.ValueAt(d, "spec.replicas") != int64(1) {
					t.Errorf("the child is %v", d)
				}
				if got, want := scene.ValueAt(s.Web(), "status.seen"), scene.ValueAt(s.Get(scene.ConfigMaps, "default", "settings"), "data.level"); got != want {
					t.Errorf("status.seen is %v, and the level %v", got, want)
				}
			})
		})
	}
	t.Run("a child that is deleted while the filter fails", func(t *testing.T) {
		scene.PlayYAML(t, `{resource: foos.v1.example.com, owns: [deployments.v1.apps], handlers: [{id: app, when: "self.spec.mode != 'off'",
			apply: {web: {apiVersion: apps/v1, kind: Deployment, metadata: {name: "${self.metadata.name}"}, spec: {replicas: 1}}}}]}`, func(s *scene.Stage) {
			s.Launch()
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {mode: "on"}}`)
			s.Settle()
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { unstructured.RemoveNestedField(o.Object, "spec", "mode") })
			s.Settle()
			s.Delete(scene.Deployments, "default", "web")
			s.Advance(time.Minute)
			s.Set("on", "spec", "mode")
			s.Settle()
			if s.Get(scene.Deployments, "default", "web") == nil {
				t.Error("it is not put back")
			}
		})
	})
	scene.PlayAll(t, map[string]scene.Scenario{
		"a label is no part of what it looks at": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("level", j.Note("level"), dsl.Field("spec.size"), dsl.Label("tier", "gold"))
		}, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, labels: {tier: gold}}, spec: {size: 1}}`)
			s.Called("level create")
			s.LabelTier("lead")
			s.Called()
			s.LabelTier("gold")
			s.Called("level update")
			s.Set("blue", "spec", "color")
			s.Called()
		}},
		"a child's news that it did not see, before it saw the object at all": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.Deployments)
			foo.OnCreate("keeps", scene.KeepsDeployment)
			foo.OnReconcile("level", j.Note("level"), dsl.Field("spec.extra"), dsl.Label("tier", "gold"))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.RollOut(3)
			s.Called()
			s.LabelTier("gold")
			s.Called("level child")
			s.LabelTier("")
			s.Called()
			s.LabelTier("gold")
			s.Called("level update")
		}},
		"an edge-triggered one has nothing to put right": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnUpdate("edge", j.Note("edge"), dsl.Label("tier", "gold"), dsl.Field("spec.size"))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.LabelTier("gold")
			s.Called()
			s.Resize(2)
			s.Called("edge update")
			s.LabelTier("lead")
			s.Called()
			s.Resize(3)
			s.Called()
			s.Resize(2)
			s.Called()
			s.LabelTier("gold")
			s.Called()
		}},
	})
}

// TestTwoOperatorsRestThoughOneOfThemDoesNotSeeTheObject holds that objects are at rest where each operator has a handler
// that waits, and one that sees what the other's does not.
func TestTwoOperatorsRestThoughOneOfThemDoesNotSeeTheObject(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
		foo.OnUpdate("waits", j.Note("waits", scene.Fails(dsl.Waiting("rain", 0))))
		foo.OnReconcile("with", j.Note("with"), dsl.Label("tier", "gold"))
	}, Play: func(s *scene.Stage) {
		other := dsl.New("other")
		other.Resource(scene.Foos, func(foo *dsl.Resource) {
			foo.OnUpdate("fails", s.Note("fails", scene.RetriesAfter(scene.Soon)))
			foo.OnReconcile("without", s.Note("without"), dsl.LabelAbsent("tier"))
		})
		theirs := s.Start(other)
		s.Begin()
		s.LabelTier("gold")
		s.CalledInAnyOrder("waits update", "fails update", "with create")
		s.Advance(time.Minute)
		s.Forget()
		theirs.Writes()
		s.Advance(time.Hour)
		s.Wrote()
		if got := theirs.Writes(); len(got) > 0 {
			t.Errorf("the other operator wrote %v", got)
		}
		for handler, want := range map[string]int{"with": 1, "without": 1} {
			if n := len(s.Of(handler, "web")); n != want {
				t.Errorf("%s was called %d times, want %d", handler, n, want)
			}
		}
	}})
}
