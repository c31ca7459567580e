// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package deletion_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// backup returns a resource that keeps a Deployment, and a Job at the end. What is given makes it.
func backup(action string) string {
	return `{resource: foos.v1.example.com, owns: [jobs.v1.batch], resync: 1h, handlers: [
		{id: app, apply: {web: {apiVersion: apps/v1, kind: Deployment, metadata: {name: "${self.metadata.name}"}, spec: {replicas: "${self.spec.size}"}}}},
		{id: backup, causes: [delete], ` + action + `}]}`
}

// finishBackup lets the backup's Job succeed.
func finishBackup(s *scene.Stage) {
	s.T.Helper()
	s.Update(scene.Jobs, "default", "web-backup", func(o *unstructured.Unstructured) {
		o.Object["status"] = map[string]any{"succeeded": int64(1)}
	})
}

// TestAChildOfADeletionHoldsItsOwner holds that what is applied for a deletion is applied then and not before, and
// holds the object until it is done.
func TestAChildOfADeletionHoldsItsOwner(t *testing.T) {
	const job = `{apiVersion: batch/v1, kind: Job, metadata: {name: "${self.metadata.name}-backup"}, spec: {parallelism: 1}}`
	const waiting = `apply: {job: {readyWhen: child.status.succeeded > 0, template: ` + job + `}}`
	for name, action := range map[string]string{
		"an action": waiting,
		"a step":    `steps: [{log: {message: bye}}, {` + waiting + `}]`,
	} {
		t.Run(name+" makes nothing while the object lives", func(t *testing.T) {
			scene.PlayYAML(t, backup(action), func(s *scene.Stage) {
				s.Begin()
				s.RollOut(1)
				s.Resize(2)
				s.Advance(3 * time.Hour)
				s.Process.Restart()
				s.RollOut(2)
				s.Advance(3 * time.Hour)
				if list := s.List(scene.Jobs, ""); len(list) > 0 || len(s.Of("backup", "web")) > 0 {
					s.T.Errorf("there are %d Jobs, and it ran %d times", len(list), len(s.Of("backup", "web")))
				}
			})
		})
		t.Run(name+" makes it when the object is deleted, and is waited for", func(t *testing.T) {
			scene.PlayYAML(t, backup(action), func(s *scene.Stage) {
				s.Begin()
				s.Remove()
				s.Settle()
				o := s.Get(scene.Jobs, "default", "web-backup")
				if o == nil {
					s.T.Fatal("there is no Job")
				}
				if refs := o.GetOwnerReferences(); len(refs) > 0 {
					s.T.Errorf("it has owner references, so it would be deleted in the foreground with its owner: %v", refs)
				}
				s.Advance(time.Hour)
				s.Process.Restart()
				s.Advance(time.Hour)
				if s.Web() == nil || s.Get(scene.Jobs, "default", "web-backup") == nil {
					s.T.Fatal("the Job was not waited for")
				}
				finishBackup(s)
				s.Advance(time.Minute)
				if s.Web() != nil {
					s.T.Errorf("the object is still there: %v", s.Events())
				}
			})
		})
	}
	t.Run("what is to go with it is deleted when it is ready", func(t *testing.T) {
		scene.PlayYAML(t, backup(`apply: {job: {onDelete: delete, readyWhen: child.status.succeeded > 0, template: `+job+`}}`), func(s *scene.Stage) {
			s.Begin()
			s.Remove()
			s.Settle()
			finishBackup(s)
			s.Advance(time.Minute)
			if s.Web() != nil || len(s.List(scene.Jobs, "")) > 0 {
				s.T.Errorf("the object is gone: %v; the Job, too: %v", s.Web() == nil, len(s.List(scene.Jobs, "")) == 0)
			}
		})
	})
	t.Run("what cannot be kept then is a fault", func(t *testing.T) {
		for action, want := range map[string]string{
			`apply: {job: {ownership: owned, template: ` + job + `}}`:                                       "cannot be owned",
			`apply: {job: {ownership: none, template: ` + job + `}}`:                                        "must say whose it is",
			`finalizer: false, apply: {job: ` + job + `}`:                                                   "with finalizer: false the object is gone",
			`finalizer: false, steps: [{log: {message: bye}}, {apply: {job: ` + job + `}}]`:                 "with finalizer: false the object is gone",
			`apply: {job: {onDelete: orphan, template: ` + job + `}}`:                                       "stays, unless this is delete",
			`apply: {job: {onDelete: delete, template: ` + job + `}}`:                                       "say with readyWhen",
			`steps: [{apply: {job: {ownership: owned, template: ` + job + `}}}, {log: {message: "hello"}}]`: "cannot be owned",
		} {
			if _, err := scene.ParseYAML(backup(action)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error is %v, want %q in it", action, err, want)
			}
		}
	})
	t.Run("what an earlier object of the name has left is not taken for it", func(t *testing.T) {
		scene.PlayYAML(t, backup(waiting), func(s *scene.Stage) {
			s.Begin()
			s.Remove()
			s.Settle()
			finishBackup(s)
			s.Advance(time.Minute)
			s.Create(scene.Web)
			s.Settle()
			s.Remove()
			s.Advance(time.Minute)
			if s.Web() == nil {
				s.T.Fatal("the second object went with the first one's backup")
			}
			s.Delete(scene.Jobs, "default", "web-backup")
			s.Advance(10 * time.Minute)
			if o := s.Get(scene.Jobs, "default", "web-backup"); o == nil {
				s.T.Error("when that is gone there is no backup of its own")
			}
		})
	})
	t.Run("a child of a handler without finalizer is made, and the object goes", func(t *testing.T) {
		scene.PlayYAML(t, backup(`apply: {job: `+job+`}`), func(s *scene.Stage) {
			s.Begin()
			s.Remove()
			s.Advance(time.Minute)
			made := false
			for _, w := range s.Writes() {
				made = made || w.Resource == "jobs" && (w.Verb == "create" || w.Verb == "patch") && w.Code < 400
			}
			if !made || s.Web() != nil {
				s.T.Errorf("a Job was made: %v; the object is gone: %v", made, s.Web() == nil)
			}
		})
	})
}

// TestADeleteHandlersSuccessCountsForItsDeletionAlone is law 7: that a delete handler succeeded counts for the deletion that
// it was recorded in, and for no other.
func TestADeleteHandlersSuccessCountsForItsDeletionAlone(t *testing.T) {
	leaving := func(foo *dsl.Resource, j *kit.Journal) {
		foo.OnDelete("first", j.Note("first"))
		foo.OnDelete("second", j.Note("second", scene.RetriesAfter(10*time.Minute)))
	}
	// record returns the annotation of an object in whose deletion first has succeeded.
	record := func(s *scene.Stage) string {
		s.T.Helper()
		s.Begin()
		s.Remove()
		s.Called("first delete", "second delete")
		text := s.Web().GetAnnotations()[scene.StateAnnotation]
		if text == "" {
			s.T.Fatal("nothing is recorded")
		}
		return text
	}
	copied := func(s *scene.Stage, name, text string) {
		s.T.Helper()
		s.Create(map[string]any{
			"apiVersion": "example.com/v1", "kind": "Foo", "spec": map[string]any{"size": int64(1), "color": "red"},
			"metadata": map[string]any{"name": name, "annotations": map[string]any{scene.StateAnnotation: text}, "finalizers": []any{scene.Finalizer}},
		})
	}
	seenOff := func(s *scene.Stage, name string, want int) {
		s.T.Helper()
		s.Settle()
		if n := len(s.Of("first", name)); n != want {
			s.T.Errorf("first was called %d times for %s, want %d", n, name, want)
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"a record is good for its own deletion": {Operator: leaving, Play: func(s *scene.Stage) {
			record(s)
			s.Process.Restart()
			s.Advance(time.Hour)
			seenOff(s, "web", 1)
		}},
		"a copy of it does not count for another object": {Operator: leaving, Play: func(s *scene.Stage) {
			copied(s, "copy", record(s))
			s.Settle()
			s.Delete(scene.Foos, "default", "copy")
			seenOff(s, "copy", 1)
		}},
		"nor where the object was made and deleted while no process ran": {Operator: leaving, Play: func(s *scene.Stage) {
			text := record(s)
			s.Process.Kill()
			copied(s, "copy", text)
			s.Delete(scene.Foos, "default", "copy")
			s.Process.Restart()
			seenOff(s, "copy", 1)
		}},
		"nor one that is written before the deletion": {Operator: leaving, Play: func(s *scene.Stage) {
			s.Begin()
			restore := s.Snapshot()
			s.Remove()
			s.Settle()
			text := s.Web().GetAnnotations()[scene.StateAnnotation]
			s.Process.Kill()
			restore()
			s.Set(text, "metadata", "annotations", scene.StateAnnotation)
			s.Process.Restart()
			s.Advance(time.Minute)
			s.Remove()
			seenOff(s, "web", 2)
		}},
		"nor where the object is the same one, restored from a backup": {Operator: leaving, Play: func(s *scene.Stage) {
			s.Begin()
			restore := s.Snapshot()
			s.Remove()
			seenOff(s, "web", 1)
			restore()
			s.Advance(2 * time.Minute)
			if s.Web().GetDeletionTimestamp() != nil {
				s.T.Fatal("the object is not restored")
			}
			s.Remove()
			s.Advance(time.Minute)
			seenOff(s, "web", 2)
		}},
	})
}
