// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package causes_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// notesOldAndDiff notes what a handler gets of the old state: its cause, what was, and how many differences there are.
func notesOldAndDiff(j *kit.Journal) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		was := "nothing is known"
		if r.Old != nil {
			was = fmt.Sprint(r.Old)
		}
		j.Add(fmt.Sprint(r.Cause, " ", was, " ", len(r.Diff)))
		return nil
	}
}

// removeField takes a field from web.
func removeField(s *scene.Stage, path ...string) {
	s.T.Helper()
	s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { unstructured.RemoveNestedField(o.Object, path...) })
}

// TestAHandlerSeesThatAFieldWasAbsent holds that a handler which has handled that there was nothing gets that, and how it
// differs from what is there now: after a restart, too.
func TestAHandlerSeesThatAFieldWasAbsent(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a field that was not there": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "a", notesOldAndDiff(j), dsl.Field("spec.note"))
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.Set("x", "spec", "note")
				s.Called("update map[] 1")
				removeField(s, "spec", "note")
				s.Called("update map[spec:map[note:x]] 1")
				s.Set("y", "spec", "note")
				s.Called("update map[] 1")
				removeField(s, "spec", "note")
				s.Forget()
				s.Process.Restart()
				s.Set("z", "spec", "note")
				s.Called("update map[] 1")
			},
		},
		"a field of status beside one of all": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "a", notesOldAndDiff(j), dsl.Field("status.phase"))
				foo.On(scene.CreateAndUpdate(), "b", notesOldAndDiff(j))
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.Resize(2)
				s.Called("update map[spec:map[color:red size:1]] 1")
				s.Process.Restart()
				s.Set("Ready", "status", "phase")
				s.Called("update map[] 1")
			},
		},
		"a null below a field": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "a", notesOldAndDiff(j), dsl.Field("spec.conf"))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {conf: {a: null, b: 1}}}`)
				s.Called("create nothing is known 0")
				s.Process.Restart()
				s.Called()
				s.Set(map[string]any{"a": nil, "b": int64(2)}, "spec", "conf")
				s.Called("update map[spec:map[conf:map[a:<nil> b:1]]] 1")
			},
		},
		"several fields, where one goes": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "a", notesOldAndDiff(j), dsl.Field("spec.size", "spec.color"))
				foo.On(scene.CreateAndUpdate(), "b", notesOldAndDiff(j), dsl.Field("spec.color", "metadata.labels.x"))
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				removeField(s, "spec", "color")
				s.Called("update map[spec:map[color:red size:1]] 1", "update map[spec:map[color:red]] 1")
				s.Process.Restart()
				s.Set("red", "spec", "color")
				s.Called("update map[spec:map[size:1]] 1", "update map[] 1")
			},
		},
		"a change that is taken back while its handler fails": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "a", func(c context.Context, r *dsl.Request) error {
					if err := notesOldAndDiff(j)(c, r); err != nil || r.Attempt > 1 {
						return err
					}
					if note, _ := dsl.MustParsePath("spec.note").In(r.Object.Object); note != nil {
						return dsl.Temporary(scene.ErrAgain, time.Hour)
					}
					return nil
				}, dsl.Field("spec.note"))
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.Set("x", "spec", "note")
				s.Called("update map[] 1")
				removeField(s, "spec", "note")
				s.Called("update map[] 0")
			},
		},
		"a level-triggered handler, for which nothing is kept": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnReconcile("a", notesOldAndDiff(j)) },
			Play: func(s *scene.Stage) {
				s.Begin()
				s.Resize(2)
				s.Called("update nothing is known 0")
			},
		},
	})
	t.Run("an object of nothing", func(t *testing.T) {
		kit.Run(t, func(t *testing.T, c *kit.Cluster) {
			s := scene.NewStage(t, c)
			s.Operator.Resource(scene.ConfigMaps, func(r *dsl.Resource) { r.On(scene.CreateAndUpdate(), "a", notesOldAndDiff(&s.Journal)) })
			s.Launch()
			s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}`)
			s.Called("create nothing is known 0")
			s.Process.Restart()
			s.Update(scene.ConfigMaps, "default", "web", func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"a": "b"} })
			s.Called("update map[] 1")
		})
	})
}
