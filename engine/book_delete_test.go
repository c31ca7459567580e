// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
	"github.com/handwerk-dev/handwerk/handlers"
)

// written plays on a stage whose operator is written in YAML and keeps the resources given. Calls of its
// handlers are noted.
func written(t *testing.T, resources string, play func(s *stage)) {
	t.Helper()
	enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
		c.Serve(enginetest.Resource{Name: foos, Kind: "Foo"})
		s := newStage(t, c)
		op, err := parse(resources)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range op.Handlers() {
			h.Func = s.Note(h.ID, h.Func)
		}
		s.Operator = op
		play(s)
	})
}

// parse reads an operator named op with the resources given, in YAML's flow style. It may call
// test.Nothing.
func parse(resources string) (*dsl.Operator, error) {
	registry := handlers.Standard()
	registry.Function(dsl.Function{Name: "test.Nothing", Func: func(context.Context, *dsl.Request) error { return nil }})
	return config.Parse("operator.yaml", []byte(`{apiVersion: handwerk.dev/v1alpha1, kind: Operator, metadata: {name: op}, resources: [`+
		strings.ReplaceAll(resources, "\t", " ")+`]}`), registry)
}

const jobs = "jobs.v1.batch"

// backup returns a resource that keeps a Deployment, and a Job at the end. What is given makes it.
func backup(action string) string {
	return `{resource: foos.v1.example.com, owns: [jobs.v1.batch], resync: 1h, handlers: [
		{id: app, apply: {web: {apiVersion: apps/v1, kind: Deployment, metadata: {name: "${self.metadata.name}"}, spec: {replicas: "${self.spec.size}"}}}},
		{id: backup, causes: [delete], ` + action + `}]}`
}

// backedUp lets the backup's Job succeed.
func (s *stage) backedUp() {
	s.t.Helper()
	s.Update(jobs, "default", "web-backup", func(o *unstructured.Unstructured) {
		o.Object["status"] = map[string]any{"succeeded": int64(1)}
	})
}

// TestChildrenOfADeletion holds that what is applied for a deletion is applied then and not before, and
// holds the object until it is done.
func TestChildrenOfADeletion(t *testing.T) {
	const job = `{apiVersion: batch/v1, kind: Job, metadata: {name: "${self.metadata.name}-backup"}, spec: {parallelism: 1}}`
	const waiting = `apply: {job: {readyWhen: child.status.succeeded > 0, template: ` + job + `}}`
	for name, action := range map[string]string{
		"an action": waiting,
		"a step":    `steps: [{log: {message: bye}}, {` + waiting + `}]`,
	} {
		t.Run(name+" makes nothing while the object lives", func(t *testing.T) {
			written(t, backup(action), func(s *stage) {
				s.begin()
				s.rollout(1)
				s.size(2)
				s.Advance(3 * time.Hour)
				s.Process.Restart()
				s.rollout(2)
				s.Advance(3 * time.Hour)
				if list := s.List(jobs, ""); len(list) > 0 || len(s.Of("backup", "web")) > 0 {
					s.t.Errorf("there are %d Jobs, and it ran %d times", len(list), len(s.Of("backup", "web")))
				}
			})
		})
		t.Run(name+" makes it when the object is deleted, and is waited for", func(t *testing.T) {
			written(t, backup(action), func(s *stage) {
				s.begin()
				s.remove()
				s.Settle()
				o := s.Get(jobs, "default", "web-backup")
				if o == nil {
					s.t.Fatal("there is no Job")
				}
				if refs := o.GetOwnerReferences(); len(refs) > 0 {
					s.t.Errorf("it has owner references, so it would be deleted in the foreground with its owner: %v", refs)
				}
				s.Advance(time.Hour)
				s.Process.Restart()
				s.Advance(time.Hour)
				if s.web() == nil || s.Get(jobs, "default", "web-backup") == nil {
					s.t.Fatal("the Job was not waited for")
				}
				s.backedUp()
				s.Advance(time.Minute)
				if s.web() != nil {
					s.t.Errorf("the object is still there: %v", s.Events())
				}
			})
		})
	}
	t.Run("what is to go with it is deleted when it is ready", func(t *testing.T) {
		written(t, backup(`apply: {job: {onDelete: delete, readyWhen: child.status.succeeded > 0, template: `+job+`}}`), func(s *stage) {
			s.begin()
			s.remove()
			s.Settle()
			s.backedUp()
			s.Advance(time.Minute)
			if s.web() != nil || len(s.List(jobs, "")) > 0 {
				s.t.Errorf("the object is gone: %v; the Job, too: %v", s.web() == nil, len(s.List(jobs, "")) == 0)
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
			if _, err := parse(backup(action)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error is %v, want %q in it", action, err, want)
			}
		}
	})
	t.Run("what an earlier object of the name has left is not taken for it", func(t *testing.T) {
		written(t, backup(waiting), func(s *stage) {
			s.begin()
			s.remove()
			s.Settle()
			s.backedUp()
			s.Advance(time.Minute)
			s.Create(web)
			s.Settle()
			s.remove()
			s.Advance(time.Minute)
			if s.web() == nil {
				s.t.Fatal("the second object went with the first one's backup")
			}
			s.Delete(jobs, "default", "web-backup")
			s.Advance(10 * time.Minute)
			if o := s.Get(jobs, "default", "web-backup"); o == nil {
				s.t.Error("when that is gone there is no backup of its own")
			}
		})
	})
	t.Run("what nobody waits for is made, and the object goes", func(t *testing.T) {
		written(t, backup(`apply: {job: `+job+`}`), func(s *stage) {
			s.begin()
			s.remove()
			s.Advance(time.Minute)
			made := false
			for _, w := range s.Writes() {
				made = made || w.Resource == "jobs" && (w.Verb == "create" || w.Verb == "patch") && w.Code < 400
			}
			if !made || s.web() != nil {
				s.t.Errorf("a Job was made: %v; the object is gone: %v", made, s.web() == nil)
			}
		})
	})
}

// TestADeletionIsSeenOffForItself is law 7: that a delete handler succeeded counts for the deletion that
// it was recorded in, and for no other.
func TestADeletionIsSeenOffForItself(t *testing.T) {
	leaving := func(foo *dsl.Resource, j *journal) {
		foo.OnDelete("first", j.Note("first"))
		foo.OnDelete("second", j.Note("second", temporary(10*time.Minute)))
	}
	// record returns the annotation of an object in whose deletion first has succeeded.
	record := func(s *stage) string {
		s.t.Helper()
		s.begin()
		s.remove()
		s.Called("first delete", "second delete")
		text := s.web().GetAnnotations()[state]
		if text == "" {
			s.t.Fatal("nothing is recorded")
		}
		return text
	}
	copied := func(s *stage, name, text string) {
		s.t.Helper()
		s.Create(map[string]any{
			"apiVersion": "example.com/v1", "kind": "Foo", "spec": map[string]any{"size": int64(1), "color": "red"},
			"metadata": map[string]any{"name": name, "annotations": map[string]any{state: text}, "finalizers": []any{finalizer}},
		})
	}
	seenOff := func(s *stage, name string, want int) {
		s.t.Helper()
		s.Settle()
		if n := len(s.Of("first", name)); n != want {
			s.t.Errorf("first was called %d times for %s, want %d", n, name, want)
		}
	}
	scenarios(t, map[string]scenario{
		"a record is good for its own deletion": {leaving, func(s *stage) {
			record(s)
			s.Process.Restart()
			s.Advance(time.Hour)
			seenOff(s, "web", 1)
		}},
		"a copy of it does not count for another object": {leaving, func(s *stage) {
			copied(s, "copy", record(s))
			s.Settle()
			s.Delete(foos, "default", "copy")
			seenOff(s, "copy", 1)
		}},
		"nor where the object was made and deleted while no process ran": {leaving, func(s *stage) {
			text := record(s)
			s.Process.Kill()
			copied(s, "copy", text)
			s.Delete(foos, "default", "copy")
			s.Process.Restart()
			seenOff(s, "copy", 1)
		}},
		"nor one that is written before the deletion": {leaving, func(s *stage) {
			s.begin()
			restore := s.Snapshot()
			s.remove()
			s.Settle()
			text := s.web().GetAnnotations()[state]
			s.Process.Kill()
			restore()
			s.set(text, "metadata", "annotations", state)
			s.Process.Restart()
			s.Advance(time.Minute)
			s.remove()
			seenOff(s, "web", 2)
		}},
		"nor where the object is the same one, restored from a backup": {leaving, func(s *stage) {
			s.begin()
			restore := s.Snapshot()
			s.remove()
			seenOff(s, "web", 1)
			restore()
			s.Advance(2 * time.Minute)
			if s.web().GetDeletionTimestamp() != nil {
				s.t.Fatal("the object is not restored")
			}
			s.remove()
			s.Advance(time.Minute)
			seenOff(s, "web", 2)
		}},
	})
}
