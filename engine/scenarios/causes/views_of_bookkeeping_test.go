// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package causes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// webWithAnnotation is web with an annotation of this key.
func webWithAnnotation(key string) string {
	return `{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, annotations: {"` + key + `": "1"}}, spec: {size: 1}}`
}

// TestAnAnnotationThatAHandlerNamesIsInItsView holds that a handler which names an annotation looks at it, also where
// operators and tools keep their progress in it, so that it counts for nothing otherwise.
func TestAnAnnotationThatAHandlerNamesIsInItsView(t *testing.T) {
	keys := map[string]string{
		"a tool's":                      "deployment.kubernetes.io/revision",
		"another operator's":            "team.handwerk.dev/pause",
		"one of this operator's domain": "op.handwerk.dev/pause",
		"kopf's":                        "kopf.zalando.org/x",
	}
	handlers := map[string]string{
		"by an expression": `{id: a, set: {status: {seen: "${self.metadata.annotations['KEY']}"}}}`,
		"by a filter":      `{id: a, annotations: {"KEY": "2"}, set: {status: {seen: "2"}}}`,
		"by a field": `{id: a, causes: [create, update], field: 'metadata.annotations["KEY"]',
			set: {status: {seen: "${self.metadata.annotations['KEY']}"}}}`,
		"by an expression of an action that happens": `{id: a, steps: [{log: {message: hello}}, {set: {status: {seen: "${self.metadata.annotations['KEY']}"}}}]}`,
	}
	for whose, key := range keys {
		for how, handler := range handlers {
			t.Run(whose+" "+how, func(t *testing.T) {
				scene.PlayYAML(t, `{resource: foos.v1.example.com, handlers: [`+strings.ReplaceAll(handler, "KEY", key)+`]}`, func(s *scene.Stage) {
					s.Launch()
					s.Create(webWithAnnotation(key))
					s.Settle()
					s.Set("2", "metadata", "annotations", key)
					s.Advance(time.Hour)
					if got := scene.ValueAt(s.Web(), "status.seen"); got != "2" {
						t.Errorf("the annotation is 2, and it is seen as %v", got)
					}
				})
			})
		}
		t.Run(whose+" that is set is put back", func(t *testing.T) {
			scene.PlayYAML(t, `{resource: foos.v1.example.com, handlers: [{id: a, set: {annotations: {"`+key+`": "1"}}}]}`, func(s *scene.Stage) {
				s.Begin()
				s.Set("2", "metadata", "annotations", key)
				s.Advance(time.Hour)
				if got := s.Web().GetAnnotations()[key]; got != "1" {
					t.Errorf("the annotation is %v", got)
				}
			})
		})
	}
}

// TestAStateOfAnotherOperatorThatAHandlerNamesIsInItsView holds the same for the state of another operator, which is known by
// its value alone where its prefix is its own.
func TestAStateOfAnotherOperatorThatAHandlerNamesIsInItsView(t *testing.T) {
	scene.PlayYAML(t, `{resource: foos.v1.example.com, handlers: [{id: a, log: {message: "${self.metadata.?annotations[?'foo.example.com/state'].hasValue()}"}}]}`, func(s *scene.Stage) {
		s.Begin()
		s.Set(`{"handwerk":2}`, "metadata", "annotations", "other.example.com/state")
		s.Called()
		s.Set(`{"handwerk":2}`, "metadata", "annotations", "foo.example.com/state")
		s.Called("a update")
	})
}

// TestBookkeepingThatNoHandlerNamesIsInNoView holds that a handler which names no annotation does not run for
// those that operators and tools keep their progress in.
func TestBookkeepingThatNoHandlerNamesIsInNoView(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"by a level-triggered handler": {Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnReconcile("a", j.Note("a")) }, Play: func(s *scene.Stage) {
			s.Begin()
			s.Set("2", "metadata", "annotations", "team.handwerk.dev/pause")
			s.Called()
		}},
		"by one of all annotations": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.On(scene.CreateAndUpdate(), "a", j.Note("a"), dsl.Field("metadata.annotations"))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Set("2", "metadata", "annotations", "team.handwerk.dev/pause")
			s.Called()
			s.Set("2", "metadata", "annotations", "team")
			s.Called("a update")
		}},
	})
}

// TestADeploymentByHelmArgoCDOrFluxRunsNoHandler holds that a deployment by Helm, Argo CD or Flux is no change of an object
// by itself.
func TestADeploymentByHelmArgoCDOrFluxRunsNoHandler(t *testing.T) {
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnUpdate("a", j.Note("a"))
			foo.OnReconcile("b", j.Note("b"))
		},
		Play: func(s *scene.Stage) {
			s.Begin()
			for _, key := range []string{
				"meta.helm.sh/release-name", "argocd.argoproj.io/tracking-id", "argocd.argoproj.io/refresh", "kustomize.toolkit.fluxcd.io/checksum",
				"shop.example.com/kopf-managed", "shop.example.com/last-handled-configuration", "kubectl.kubernetes.io/last-applied-configuration",
			} {
				s.Set("1", "metadata", "annotations", key)
				s.Set("2", "metadata", "annotations", key)
				s.Called()
			}
			s.Set("now", "metadata", "annotations", "reconcile.fluxcd.io/requestedAt")
			s.Called("a update", "b update")
			for key, value := range map[string]string{
				"app.kubernetes.io/managed-by": "Helm", "kustomize.toolkit.fluxcd.io/name": "apps", "argocd.argoproj.io/instance": "shop",
			} {
				s.Set(value, "metadata", "labels", key)
				s.Called()
			}
			s.Set("shop", "metadata", "labels", "app.kubernetes.io/instance")
			s.Called("a update", "b update")
		},
	})
}

// TestAnAnnotationOfAFilterIsInTheView holds that a handler in Go runs again when an annotation by which it is
// filtered was another one in between.
func TestAnAnnotationOfAFilterIsInTheView(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
		foo.OnReconcile("a", j.Note("a"), dsl.AnnotationExists("team.handwerk.dev/pause"))
	}, Play: func(s *scene.Stage) {
		s.Begin()
		s.Set("1", "metadata", "annotations", "team.handwerk.dev/pause")
		s.Called("a create")
		s.Set("2", "metadata", "annotations", "team.handwerk.dev/pause")
		s.Called("a update")
	}})
}

// TestTheOwnStateIsInNoView holds that what the engine writes on an object for itself is in no view, also
// where a handler names it.
func TestTheOwnStateIsInNoView(t *testing.T) {
	for _, key := range []string{scene.StateAnnotation, scene.RecordAnnotation} {
		t.Run(key, func(t *testing.T) {
			scene.PlayYAML(t, `{resource: foos.v1.example.com, owns: [deployments.v1.apps], handlers: [
				{id: a, set: {status: {seen: "${self.metadata.?annotations[?'`+key+`'].hasValue()}"}}},
				{id: b, causes: [create, update], field: 'metadata.annotations["`+key+`"]', log: {message: hello}},
				{id: app, apply: {web: {ownership: labelled, template: {apiVersion: apps/v1, kind: Deployment, metadata: {name: "${self.metadata.name}", namespace: other}}}}},
				{id: stores, causes: [create], log: {message: hello}}]}`, func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Hour)
				if n := len(s.Of("a", "web")) + len(s.Of("b", "web")); n != 1 {
					t.Errorf("those that look at it were called %d times", n)
				}
				if _, written := s.Web().GetAnnotations()[key]; !written {
					t.Error("the engine has written nothing")
				}
			})
		})
	}
}

// TestTheOwnFinalizerIsInNoView holds that the finalizer which the engine adds is news to no handler, and
// that those of others are.
func TestTheOwnFinalizerIsInNoView(t *testing.T) {
	others := func(s *scene.Stage) {
		s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
			o.SetFinalizers(append(o.GetFinalizers(), "example.com/other"))
		})
	}
	for name, c := range map[string]struct {
		handler       string
		create, other []string
	}{
		"to one that reads finalizers": {`log: {message: "${size(self.metadata.?finalizers.orValue([]))}"}`, []string{"a create"}, []string{"a update"}},
		"to one that takes the object": {`log: {message: "${ready(self)}"}`, []string{"a create"}, []string{"a update"}},
		"to one of the field":          {`causes: [create, update], field: metadata.finalizers, log: {message: hello}`, nil, []string{"a update"}},
		"to one of a field around":     {`causes: [create, update], field: metadata, log: {message: hello}`, []string{"a create"}, []string{"a update"}},
	} {
		t.Run(name, func(t *testing.T) {
			scene.PlayYAML(t, `{resource: foos.v1.example.com, handlers: [{id: a, `+c.handler+`}, {id: bye, causes: [delete], log: {message: bye}}]}`, func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Hour)
				s.Called(c.create...)
				s.Set("blue", "spec", "color")
				s.Forget()
				others(s)
				s.Called(c.other...)
				if got := s.Web().GetFinalizers(); fmt.Sprint(got) != fmt.Sprint([]string{scene.Finalizer, "example.com/other"}) {
					t.Errorf("the finalizers are %v", got)
				}
			})
		})
	}
}
