// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book_test

import (
	"maps"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

const replicasets = "replicasets.v1.apps"

// TestAnObjectWithACopiedStateIsNew holds that an object which carries the state of another one is new,
// and that the operator does not fight with the writer of the copy, as the Deployment controller does at each look.
func TestAnObjectWithACopiedStateIsNew(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		s := scene.NewStage(t, c)
		for name, id := range map[string]string{scene.Deployments: "deployment", replicasets: "set"} {
			s.Operator.Resource(name, func(r *dsl.Resource) { r.On(scene.CreateAndUpdate(), id, s.Note(id)) })
		}
		s.Launch()
		s.Create(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1, selector: {matchLabels: {a: b}}}}`)
		s.Called("deployment create")
		copied := func() map[string]string { return s.Get(scene.Deployments, "default", "web").GetAnnotations() }
		set := &unstructured.Unstructured{}
		set.SetAPIVersion("apps/v1")
		set.SetKind("ReplicaSet")
		set.SetName("web-1")
		set.SetAnnotations(copied())
		set.Object["spec"] = map[string]any{"replicas": int64(1)}
		s.Create(set)
		s.Called("set create")
		s.Process.Writes()
		for range 10 {
			s.Update(replicasets, "default", "web-1", func(o *unstructured.Unstructured) {
				annotations := o.GetAnnotations()
				if annotations == nil {
					annotations = map[string]string{}
				}
				maps.Copy(annotations, copied())
				o.SetAnnotations(annotations)
			})
			s.Advance(100 * time.Millisecond)
		}
		s.Called()
		if writes := s.Process.Writes(); len(writes) > 2 {
			t.Errorf("%d writes while a controller copied annotations ten times: %v", len(writes), writes)
		}
		s.Update(replicasets, "default", "web-1", func(o *unstructured.Unstructured) { o.Object["spec"] = map[string]any{"replicas": int64(2)} })
		s.Called("set update")
	})
}

// exportWeb is web as kubectl get -o yaml shows it and an editor leaves it, to be recreated.
func exportWeb(s *scene.Stage) *unstructured.Unstructured {
	s.T.Helper()
	s.Settle()
	o := s.Web()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "finalizers"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	return o
}

// eachCauseWithoutFinalizer is edges without what holds objects.
func eachCauseWithoutFinalizer(foo *dsl.Resource, j *kit.Journal) {
	foo.OnCreate("made", j.Note("made"))
	foo.OnUpdate("changed", scene.NotesOld(j))
}

// TestAnObjectMadeFromTheTextOfAnotherIsNew holds that an object which was made from the text of another one, a copy, a
// restore, gets its create handlers, whatever that one had come to.
func TestAnObjectMadeFromTheTextOfAnotherIsNew(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a copy under another name": {Operator: eachCauseWithoutFinalizer, Play: func(s *scene.Stage) {
			s.Begin()
			o := exportWeb(s)
			o.SetName("second")
			s.Create(o)
			s.Called("made create")
			s.Process.Restart()
			s.Called()
		}},
		"a copy in another namespace": {Operator: eachCauseWithoutFinalizer, Play: func(s *scene.Stage) {
			s.Begin()
			o := exportWeb(s)
			o.SetNamespace("other")
			s.Create(o)
			s.Called("made create")
		}},
		"a copy with another spec, whose next change is one against its own": {Operator: eachCauseWithoutFinalizer, Play: func(s *scene.Stage) {
			s.Begin()
			o := exportWeb(s)
			o.SetName("second")
			o.Object["spec"] = map[string]any{"size": int64(5)}
			s.Create(o)
			s.Called("made create")
			s.Update(scene.Foos, "default", "second", func(o *unstructured.Unstructured) { o.Object["spec"] = map[string]any{"size": int64(6)} })
			s.Called("update map[spec:map[size:5]] [change spec.size 5 6]")
		}},
		"a copy that was made before the operator came": {Operator: eachCauseWithoutFinalizer, Play: func(s *scene.Stage) {
			s.Begin()
			scene.Stop(s)
			o := exportWeb(s)
			o.SetName("second")
			s.Create(o)
			s.Process.Restart()
			s.Called("made create")
		}},
		"one that is restored under its name": {Operator: eachCauseWithoutFinalizer, Play: func(s *scene.Stage) {
			s.Begin()
			o := exportWeb(s)
			s.Remove()
			s.Create(o)
			s.Called("made create")
			s.Process.Restart()
			s.Called()
		}},
		"one that is restored under its name while the operator is away": {Operator: eachCauseWithoutFinalizer, Play: func(s *scene.Stage) {
			s.Begin()
			o := exportWeb(s)
			scene.Stop(s)
			s.Remove()
			s.Create(o)
			s.Process.Restart()
			s.Called("made create")
		}},
		"a copy of one whose handler had failed for good": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("made", j.Note("made", scene.Fails(dsl.Permanent(scene.ErrAgain)), scene.Succeeds))
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				o := exportWeb(s)
				o.SetName("second")
				s.Create(o)
				s.Called("made create")
			},
		},
		"a copy of one whose handler is to be tried in an hour": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("made", j.Note("made", scene.RetriesAfter(time.Hour), scene.Succeeds))
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				o := exportWeb(s)
				o.SetName("second")
				s.Create(o)
				s.Called("made create")
			},
		},
	})
}
