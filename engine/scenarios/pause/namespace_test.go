// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pause_test

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
	"github.com/handwerk-dev/handwerk/engine/ops"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAnnotationsOfNamespaces holds what the annotation of a namespace means beside what each pause does.
func TestAnnotationsOfNamespaces(t *testing.T) {
	looking := map[string]string{pausedKey: "looking"}
	scene.PlayAll(t, map[string]scene.Scenario{
		"objects in other namespaces are handled": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			s.Begin()
			pauseNamespace(s, "other", looking)
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, namespace: other}}`)
			s.Called()
			s.Resize(2)
			s.Called("changed update", "sized update")
			pauseNamespace(s, "other", nil)
			s.Called("made create")
		}},
		"the annotation of another operator means nothing": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Begin()
			pauseNamespace(s, "default", map[string]string{"other.handwerk.dev/paused": "x"})
			s.Resize(2)
			s.Called("sync update")
		}},
		"deletions wait, also of what is gone": {Operator: func(foo *dsl.Resource, j *enginetest.Journal) {
			foo.OnDelete("held", j.Note("held"), dsl.Label("tier", "gold"))
			foo.OnDelete("left", j.Note("left"), dsl.NoFinalizer())
		}, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.GoldWeb)
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: other}}`)
			s.Forget()
			pauseNamespace(s, "default", looking)
			s.Remove()
			s.Delete(scene.Foos, "default", "other")
			s.Advance(time.Hour)
			s.Called()
			s.WantFinalizers(scene.Finalizer)
			pauseNamespace(s, "default", nil)
			s.CalledInAnyOrder("held delete", "left delete", "left delete")
			s.WantGone()
		}},
		"or deletions go on": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			s.Begin()
			pauseNamespace(s, "default", map[string]string{pausedKey: "looking", deletionsKey: "proceed"})
			s.Resize(2)
			s.Called()
			s.Remove()
			s.Called("left delete")
			s.WantGone()
		}},
		"a namespace that is gone is not paused": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Launch()
			pauseNamespace(s, "other", looking)
			s.Delete("namespaces.v1", "", "other")
			s.Settle()
			if got := s.Process.Engine().Pauses(); len(got) > 0 {
				s.T.Errorf("pauses %v", got)
			}
		}},
		"without the right to watch namespaces the operator works": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			pauseNamespace(s, "default", looking)
			for _, verb := range reads {
				s.Forbid(verb, "namespaces.v1")
			}
			s.Create(scene.Web)
			s.Launch()
			s.Called("sync resume")
			scene.WantWell(s)
			for _, verb := range reads {
				s.Allow(verb, "namespaces.v1")
			}
			s.Advance(2 * time.Minute)
			s.Resize(2)
			s.Called()
		}},
		"an operator that works in namespaces by name does not watch them": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Operator.Scope.Namespaces = []string{"default"}
			pauseNamespace(s, "default", looking)
			s.Begin()
			s.Resize(2)
			s.Called("sync update")
		}},
		"it is counted": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			metrics := ops.NewMetrics()
			s.Adjust = append(s.Adjust, func(e *engine.Settings) { e.Metrics = metrics })
			s.Begin()
			pauseNamespace(s, "default", looking)
			pauseNamespace(s, "other", looking)
			if got := pausedBy(s.T, metrics); got["namespace"] != 2 || got["operator"] != 0 {
				s.T.Errorf("handwerk_paused is %v", got)
			}
		}},
	})
}
