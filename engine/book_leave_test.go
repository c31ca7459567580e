// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestBackupOfWhatLeavesTheSelector holds that an object that leaves the operator's selector is seen off as a
// deleted one is: what is applied for that is made and waited for, and then the finalizer goes.
func TestBackupOfWhatLeavesTheSelector(t *testing.T) {
	const job = `{apiVersion: batch/v1, kind: Job, metadata: {name: "${self.metadata.name}-backup"}, spec: {parallelism: 1}}`
	gold := func(options string) string {
		return strings.Replace(backup(`apply: {job: {`+options+`template: `+job+`}}`), "resync: 1h,", "selector: {matchLabels: {tier: gold}},", 1)
	}
	leaves := func(s *stage) {
		s.Launch()
		s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, labels: {tier: gold}}, spec: {size: 1}}`)
		s.Forget()
		s.finalizers(finalizer)
		s.set("lead", "metadata", "labels", "tier")
		s.Settle()
	}
	made := func(s *stage) {
		s.t.Helper()
		if s.Get(jobs, "default", "web-backup") == nil {
			s.t.Fatalf("there is no Job: %v", s.Events())
		}
	}
	const waits = "readyWhen: child.status.succeeded > 0, "
	for name, one := range map[string]struct {
		options string
		play    func(s *stage)
	}{
		"one that is not waited for": {"", func(s *stage) {
			made(s)
			s.finalizers()
		}},
		"one that is waited for": {waits, func(s *stage) {
			made(s)
			s.Advance(3 * time.Hour)
			s.finalizers(finalizer)
			s.backedUp()
			s.Advance(time.Second) // its change wakes the handler
			s.finalizers()
			made(s)
		}},
		"one that is to go with it": {waits + "onDelete: delete, ", func(s *stage) {
			made(s)
			s.backedUp()
			s.Advance(time.Minute)
			s.finalizers()
			if s.Get(jobs, "default", "web-backup") != nil {
				s.t.Error("the Job is still there")
			}
		}},
		"one for each time that it leaves": {waits, func(s *stage) {
			made(s)
			s.backedUp()
			s.Advance(time.Minute)
			s.finalizers()
			first := s.Get(jobs, "default", "web-backup").GetUID()
			s.set("gold", "metadata", "labels", "tier")
			s.Advance(time.Minute)
			s.set("lead", "metadata", "labels", "tier")
			s.Advance(time.Hour)
			s.finalizers(finalizer)
			if o := s.Get(jobs, "default", "web-backup"); o.GetUID() != first || value(o, "status.succeeded") == nil {
				s.t.Errorf("the first backup is %v", o)
			}
			s.warned("backup")
			s.Delete(jobs, "default", "web-backup")
			s.Advance(time.Hour)
			made(s)
			s.finalizers(finalizer)
			s.backedUp()
			s.Advance(time.Minute)
			s.finalizers()
		}},
		"the object is deleted meanwhile": {waits, func(s *stage) {
			made(s)
			s.remove()
			s.Advance(time.Hour)
			if s.web() == nil {
				s.t.Fatal("the Job was not waited for")
			}
			s.backedUp()
			s.Advance(time.Minute)
			s.gone()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			written(t, gold(one.options), func(s *stage) {
				leaves(s)
				one.play(s)
				if !strings.Contains(name, "each time") {
					s.unwarned()
				}
			})
		})
	}
	t.Run("of one that is gone nothing is made, and the handler has failed", func(t *testing.T) {
		perform(t, scenario{func(foo *dsl.Resource, j *journal) {
			foo.Owns(jobs)
			foo.OnDelete("backup", j.Note("backup", func(c ctx, r *dsl.Request) error {
				o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "web-backup"}}}
				_, err := r.Children.Apply(c, o, dsl.ChildSpec{Handler: "backup", Name: "job", Ownership: dsl.Labelled})
				return err
			}), dsl.NoFinalizer())
		}, func(s *stage) {
			s.begin()
			s.remove()
			s.Advance(time.Hour)
			s.Called("backup delete")
			if n := len(s.List(jobs, "")); n > 0 {
				s.t.Errorf("there are %d Jobs that nobody would ever find", n)
			}
			s.warned("backup")
		}})
	})
}

// unwarned checks that nobody was told of anything.
func (s *stage) unwarned() {
	s.t.Helper()
	for _, e := range s.Events() {
		if e.Type == "Warning" {
			s.t.Errorf("somebody is told: %v", e)
		}
	}
}

// TestABackupOfAnotherTime holds that what was made for a departure that was taken back is not taken for the next one's.
func TestABackupOfAnotherTime(t *testing.T) {
	const text = `{resource: foos.v1.example.com, owns: [jobs.v1.batch], selector: {matchLabels: {tier: gold}}, handlers: [
		{id: app, apply: {web: {apiVersion: apps/v1, kind: Deployment, metadata: {name: "${self.metadata.name}"}, spec: {replicas: "${self.spec.size}"}}}},
		{id: backup, causes: [delete], apply: {job: {readyWhen: child.status.succeeded > 0, template: {apiVersion: batch/v1, kind: Job, metadata: {name: "${self.metadata.name}-backup"}, spec: {parallelism: 1}}}}}]}`
	for name, between := range map[string]func(s *stage){
		"it comes back before the backup is done": func(s *stage) {},
		"a restart in between":                    func(s *stage) { s.Process.Kill(); s.Process.Restart() },
	} {
		t.Run(name, func(t *testing.T) {
			written(t, text, func(s *stage) {
				s.Launch()
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, labels: {tier: gold}}, spec: {size: 1}}`)
				s.Forget()
				s.set("lead", "metadata", "labels", "tier")
				s.Settle()
				if s.Get(jobs, "default", "web-backup") == nil {
					t.Fatal("no backup is made")
				}
				between(s)
				s.Settle()
				s.set("gold", "metadata", "labels", "tier") // it lives on
				s.Settle()
				s.Update(jobs, "default", "web-backup", func(o *unstructured.Unstructured) { o.Object["status"] = map[string]any{"succeeded": int64(1)} })
				uid := s.Get(jobs, "default", "web-backup").GetUID()
				s.Advance(time.Hour)
				s.size(7)
				s.Advance(time.Hour)
				s.finalizers(finalizer)
				s.set("lead", "metadata", "labels", "tier")
				s.Advance(time.Hour)
				job := s.Get(jobs, "default", "web-backup")
				if len(s.web().GetFinalizers()) == 0 && job != nil && job.GetUID() == uid {
					t.Error("it is let go with the backup of the time before, which lacks what came since")
				}
			})
		})
	}
}

// TestABackupWhoseNameChanges holds that what a delete handler made under another name, before the object was changed
// in its deletion, is known as its child, too.
func TestABackupWhoseNameChanges(t *testing.T) {
	written(t, backup(`apply: {job: {onDelete: delete, readyWhen: child.status.succeeded > 0, template:
		{apiVersion: batch/v1, kind: Job, metadata: {name: "${self.metadata.name}-${string(self.spec.size)}"}, spec: {parallelism: 1}}}}`), func(s *stage) {
		s.begin()
		s.remove()
		s.Settle()
		s.size(2)
		s.Advance(time.Minute)
		s.Update(jobs, "default", "web-2", func(o *unstructured.Unstructured) { o.Object["status"] = map[string]any{"succeeded": int64(1)} })
		s.Advance(10 * time.Minute)
		if left := s.List(jobs, ""); s.web() != nil || len(left) > 0 {
			t.Errorf("the object is gone: %v; Jobs that are left: %d; %v", s.web() == nil, len(left), s.Events())
		}
	})
}
