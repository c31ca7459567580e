// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pause_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAnnotationsOfObjects holds what the annotation of an object means.
func TestAnnotationsOfObjects(t *testing.T) {
	resume := func(s *scene.Stage) { annotate(s, map[string]string{pausedKey: ""}) }
	scene.PlayAll(t, map[string]scene.Scenario{
		"an object that is created with it is created for its handlers afterwards": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(pausedWeb)
			s.Advance(time.Hour)
			s.Called()
			s.WantFinalizers()
			resume(s)
			s.Called("made create")
		}},
		"also where the operator has started meanwhile": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			s.Create(pausedWeb)
			s.Launch()
			s.Advance(time.Hour)
			s.Called()
			resume(s)
			s.Called("made create")
		}},
		"a copy of a paused object is paused, and others are not": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(pausedWeb)
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: copy, annotations: {` + pausedKey + `: looking}}}`)
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: other}}`)
			s.Called("sync create")
		}},
		"its value is the reason and nothing else": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, annotations: {` + pausedKey + `: "false"}}}`)
			s.Called()
		}},
		"another reason changes the condition": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Update(scene.CRDs, "", "foos.example.com", scene.AddConditions)
			s.Launch()
			s.Create(pausedWeb)
			s.WantCondition("Paused", "True@1 Annotation: Operator op: looking")
			annotate(s, map[string]string{pausedKey: "still looking"})
			s.WantCondition("Paused", "True@1 Annotation: Operator op: still looking")
		}},
		"a condition of another controller stays": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Update(scene.CRDs, "", "foos.example.com", scene.AddConditions)
			s.Create(pausedWeb)
			theirs := map[string]any{"type": "Paused", "status": "False", "reason": "Theirs", "message": "no"}
			s.Set([]any{theirs}, "status", "conditions")
			s.Launch()
			resume(s)
			s.Called("sync resume")
			s.WantCondition("Paused", "False@<nil> Theirs: no")
		}},
		"one from an earlier name of the operator goes": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Update(scene.CRDs, "", "foos.example.com", scene.AddConditions)
			s.Operator.Name = "older"
			s.Begin()
			annotate(s, map[string]string{"older.handwerk.dev/paused": "looking"})
			s.WantCondition("Paused", "True@1 Annotation: Operator older: looking")
			scene.Stop(s)
			s.Operator = dsl.New("op")
			s.Operator.Was = []string{"older"}
			s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) { scene.Syncs(foo, &s.Journal) })
			s.Launch()
			s.WantCondition("Paused", "True@1 Annotation: Operator op: looking")
			scene.Stop(s)
			annotate(s, map[string]string{"older.handwerk.dev/paused": ""})
			s.Set([]any{map[string]any{"type": "Paused", "status": "True", "reason": "Annotation", "message": "Operator older: looking"}}, "status", "conditions")
			s.Process.Restart()
			s.Called("sync resume")
			s.WantCondition("Paused")
		}},
		"a condition that another hand takes off stays off": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Update(scene.CRDs, "", "foos.example.com", scene.AddConditions)
			s.Begin()
			annotate(s, map[string]string{pausedKey: "x"})
			s.Forget()
			for range 10 {
				s.Set([]any{}, "status", "conditions")
			}
			s.Wrote()
			annotate(s, map[string]string{pausedKey: "y"})
			s.WantCondition("Paused", "True@1 Annotation: Operator op: y")
		}},
		"the annotation of another operator means nothing": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Begin()
			annotate(s, map[string]string{"other.handwerk.dev/paused": "x", "op.example.com/paused": "x"})
			s.Forget()
			s.Resize(2)
			s.Called("sync update")
		}},
		"that under an earlier name counts": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Operator.Was = []string{"older"}
			s.Begin()
			annotate(s, map[string]string{"older.handwerk.dev/paused": "x"})
			s.Resize(2)
			s.Called()
			annotate(s, map[string]string{"older.handwerk.dev/paused": ""})
			s.Called("sync update")
		}},
		"for an operator with a domain of its own it is no change either": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			s.Operator.Domain = "example.com"
			s.Begin()
			annotate(s, map[string]string{"op.example.com/paused": "x"})
			s.Resize(2)
			s.Called()
			s.Resize(1)
			annotate(s, map[string]string{"op.example.com/paused": "", "op.example.com/paused-deletions": "proceed"})
			s.Advance(time.Hour)
			s.Called()
		}},
		"an object that loses its operator's sight is let go": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.LabelSelector = "tier=gold"
			scene.EachCause(foo, j)
		}, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.GoldWeb)
			s.Forget()
			annotate(s, map[string]string{pausedKey: "x"})
			s.LabelTier("silver")
			s.Called("left delete")
			s.WantFinalizers()
		}},
	})
}

// TestALongReasonFits holds that a reason of any length is said, as far as conditions of usual schemas have room.
func TestALongReasonFits(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: scene.Syncs, Play: func(s *scene.Stage) {
		s.Update(scene.CRDs, "", "foos.example.com", scene.AddConditions)
		s.Refuse(scene.Foos, func(o *unstructured.Unstructured) error {
			if c := scene.Condition(o, "Paused"); c != nil && len(c["message"].(string)) > 32768 {
				return errors.New("status.conditions[0].message: Too long: may not be more than 32768 bytes")
			}
			return nil
		})
		s.Begin()
		annotate(s, map[string]string{pausedKey: strings.Repeat("x", 100_000)})
		if c := scene.Condition(s.Web(), "Paused"); c == nil || !strings.HasPrefix(c["message"].(string), "Operator op: xxx") {
			t.Errorf("the condition is %.100v", c)
		}
		s.Advance(time.Minute)
		for _, line := range checks(s) {
			if len(line) > 32768 {
				t.Errorf("a check has %d bytes: %.100s", len(line), line)
			}
		}
	}})
}

// TestDeletionsOfPausedObjects holds that the one who pauses chooses whether deletions go on.
func TestDeletionsOfPausedObjects(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a deletion waits for the end of the pause": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			s.Begin()
			annotate(s, map[string]string{pausedKey: "looking"})
			s.Remove()
			s.Advance(time.Hour)
			s.Called()
			s.WantFinalizers(scene.Finalizer)
			s.Process.Restart()
			s.Advance(time.Hour)
			s.Called()
			annotate(s, map[string]string{pausedKey: ""})
			s.Called("left delete")
			s.WantGone()
		}},
		"or goes on": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			s.Begin()
			annotate(s, map[string]string{pausedKey: "looking", deletionsKey: "proceed"})
			s.Resize(2)
			s.Called()
			s.Remove()
			s.Called("left delete")
			s.WantGone()
		}},
		"the choice may come later": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			s.Begin()
			annotate(s, map[string]string{pausedKey: "looking"})
			s.Remove()
			s.Called()
			annotate(s, map[string]string{deletionsKey: "proceed"})
			s.Called("left delete")
			s.WantGone()
		}},
		"children of an object whose deletion waits stay": {Operator: keepsValue, Play: func(s *scene.Stage) {
			s.Begin()
			annotate(s, map[string]string{pausedKey: "looking"})
			s.Remove()
			s.Advance(time.Minute)
			if got := value(s); s.Web() != nil && got != "1" {
				s.T.Errorf("the value is %v", got)
			}
		}},
		"what is gone cannot be resumed, so its handlers run": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnDelete("left", j.Note("left"), dsl.NoFinalizer())
		}, Play: func(s *scene.Stage) {
			s.Begin()
			annotate(s, map[string]string{pausedKey: "looking"})
			s.Remove()
			s.Called("left delete")
			s.WantGone()
		}},
	})
}
