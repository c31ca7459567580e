// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// theirReady is what another controller says.
func theirReady(o *unstructured.Unstructured) {
	o.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "Ready", "status": "Unknown", "reason": "Theirs", "message": "", "lastTransitionTime": "2000-01-01T00:00:00Z", "observedGeneration": o.GetGeneration(),
	}}}
}

// TestReadyIsLeftToAnotherController holds that the engine leaves the condition to another controller as long as there is
// one, that the log says so once, and that the engine says it again later.
func TestReadyIsLeftToAnotherController(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, _ *kit.Journal) {
		foo.Ready = new(true)
		foo.OnReconcile("seen", scene.Succeeds)
	}, Play: func(s *scene.Stage) {
		s.Update(scene.CRDs, "", "foos.example.com", scene.AddConditions)
		log := scene.LaunchWithLog(s, "condition Ready")
		s.Create(scene.Web)
		wantReadyCondition(s, "at first", `1 True AllReady ""`)
		log()
		s.Update(scene.Foos, "default", "web", theirReady)
		s.Advance(time.Minute)
		wantReadyCondition(s, "when another one has set it", `1 Unknown Theirs ""`)
		s.Resize(2)
		s.Advance(time.Hour)
		wantReadyCondition(s, "of another generation", `1 Unknown Theirs ""`)
		s.WantLines(log, `"msg"="the condition Ready is left to the field manager that has set it" .*"manager"="[^"]+" "object"="default/web"`)
		s.Process.Restart()
		s.Advance(time.Hour)
		wantReadyCondition(s, "after a restart", `1 Unknown Theirs ""`)
		log()
		s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { delete(o.Object, "status") })
		s.Advance(time.Minute)
		wantReadyCondition(s, "when no handler says it", `2 True AllReady ""`)
		s.WantLines(log)
		s.Forget()
		s.Advance(time.Hour)
		s.Wrote()
	}})
}

// TestReadyIsNotWrittenDuringADeletion holds that an object that is being deleted costs no write for the condition.
func TestReadyIsNotWrittenDuringADeletion(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, _ *kit.Journal) {
		foo.Ready = new(true)
		foo.OnReconcile("seen", scene.Succeeds)
		foo.OnDelete("farewell", scene.Fails(dsl.Waiting("the bank", 10*time.Second)))
	}, Play: func(s *scene.Stage) {
		s.Update(scene.CRDs, "", "foos.example.com", scene.AddConditions)
		s.Begin()
		wantReadyCondition(s, "at first", `1 True AllReady ""`)
		s.Forget()
		s.Remove()
		s.Advance(10 * time.Minute)
		wantReadyCondition(s, "while it waits for its end", `1 True AllReady ""`)
		s.Wrote()
	}})
}

// TestAnUpgradeThatBringsReadySaysSoOnce holds the log line about the writes that it costs, however many objects there are,
// and that none is written of an object that is new.
func TestAnUpgradeThatBringsReadySaysSoOnce(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, _ *kit.Journal) {
		foo.Ready = new(false)
		foo.OnReconcile("seen", func(_ context.Context, r *dsl.Request) error {
			r.Patch.SetCondition("Seen", "True", "Seen", "It was seen.")
			return nil
		})
	}, Play: func(s *scene.Stage) {
		const words = `"msg"="objects get the condition Ready: a write for each"`
		s.Update(scene.CRDs, "", "foos.example.com", scene.AddConditions)
		s.Begin()
		s.Create(strings.Replace(scene.Web, "name: web", "name: other", 1))
		wantReadyCondition(s, "before", "nothing")
		if err := s.Process.Stop(); err != nil {
			s.T.Error(err)
		}
		s.Operator.Resources()[0].Ready = new(true)
		log := scene.LaunchWithLog(s, "get the condition Ready")
		wantReadyCondition(s, "after the upgrade", `1 True AllReady ""`)
		s.WantLines(log, words)
		s.Create(strings.Replace(scene.Web, "name: web", "name: third", 1))
		s.Process.Restart()
		s.Advance(time.Hour)
		s.WantLines(log)
	}})
}
