// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package deletion_test

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

// TestAnObjectThatLeavesTheSelectorIsHandledAsDeleted holds that an object that leaves the operator's selector is released as a
// deleted one is: what is applied for that is made and waited for, and then the finalizer goes.
func TestAnObjectThatLeavesTheSelectorIsHandledAsDeleted(t *testing.T) {
	const job = `{apiVersion: batch/v1, kind: Job, metadata: {name: "${self.metadata.name}-backup"}, spec: {parallelism: 1}}`
	gold := func(options string) string {
		return strings.Replace(backup(`apply: {job: {`+options+`template: `+job+`}}`), "resync: 1h,", "selector: {matchLabels: {tier: gold}},", 1)
	}
	leaves := func(s *scene.Stage) {
		s.Launch()
		s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, labels: {tier: gold}}, spec: {size: 1}}`)
		s.Forget()
		s.WantFinalizers(scene.Finalizer)
		s.Set("lead", "metadata", "labels", "tier")
		s.Settle()
	}
	made := func(s *scene.Stage) {
		s.T.Helper()
		if s.Get(scene.Jobs, "default", "web-backup") == nil {
			s.T.Fatalf("there is no Job: %v", s.Events())
		}
	}
	const waits = "readyWhen: child.status.succeeded > 0, "
	for name, one := range map[string]struct {
		options string
		play    func(s *scene.Stage)
	}{
		"one that is not waited for": {"", func(s *scene.Stage) {
			made(s)
			s.WantFinalizers()
		}},
		"one that is waited for": {waits, func(s *scene.Stage) {
			made(s)
			s.Advance(3 * time.Hour)
			s.WantFinalizers(scene.Finalizer)
			finishBackup(s)
			s.Advance(time.Second) // its change wakes the handler
			s.WantFinalizers()
			made(s)
		}},
		"one that is to go with it": {waits + "onDelete: delete, ", func(s *scene.Stage) {
			made(s)
			finishBackup(s)
			s.Advance(time.Minute)
			s.WantFinalizers()
			if s.Get(scene.Jobs, "default", "web-backup") != nil {
				s.T.Error("the Job is still there")
			}
		}},
		"one for each time that it leaves": {waits, func(s *scene.Stage) {
			made(s)
			finishBackup(s)
			s.Advance(time.Minute)
			s.WantFinalizers()
			first := s.Get(scene.Jobs, "default", "web-backup").GetUID()
			s.Set("gold", "metadata", "labels", "tier")
			s.Advance(time.Minute)
			s.Set("lead", "metadata", "labels", "tier")
			s.Advance(time.Hour)
			s.WantFinalizers(scene.Finalizer)
			if o := s.Get(scene.Jobs, "default", "web-backup"); o.GetUID() != first || scene.ValueAt(o, "status.succeeded") == nil {
				s.T.Errorf("the first backup is %v", o)
			}
			s.WantWarning("backup")
			s.Delete(scene.Jobs, "default", "web-backup")
			s.Advance(time.Hour)
			made(s)
			s.WantFinalizers(scene.Finalizer)
			finishBackup(s)
			s.Advance(time.Minute)
			s.WantFinalizers()
		}},
		"the object is deleted meanwhile": {waits, func(s *scene.Stage) {
			made(s)
			s.Remove()
			s.Advance(time.Hour)
			if s.Web() == nil {
				s.T.Fatal("the Job was not waited for")
			}
			finishBackup(s)
			s.Advance(time.Minute)
			s.WantGone()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			scene.PlayYAML(t, gold(one.options), func(s *scene.Stage) {
				leaves(s)
				one.play(s)
				if !strings.Contains(name, "each time") {
					s.WantNoWarning()
				}
			})
		})
	}
	t.Run("of one that is gone nothing is made, and the handler has failed", func(t *testing.T) {
		scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.Jobs)
			foo.OnDelete("backup", j.Note("backup", func(c context.Context, r *dsl.Request) error {
				o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "web-backup"}}}
				_, err := r.Children.Apply(c, o, dsl.ChildSpec{Handler: "backup", Name: "job", Ownership: dsl.Labelled})
				return err
			}), dsl.NoFinalizer())
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Remove()
			s.Advance(time.Hour)
			s.Called("backup delete")
			if n := len(s.List(scene.Jobs, "")); n > 0 {
				s.T.Errorf("there are %d Jobs that no handler would ever find", n)
			}
			s.WantWarning("backup")
		}})
	})
}

// TestAChildOfAnEarlierDepartureDoesNotCount holds that what was made for a departure that was taken back is not taken for
// the next one's.
func TestAChildOfAnEarlierDepartureDoesNotCount(t *testing.T) {
	const text = `{resource: foos.v1.example.com, owns: [jobs.v1.batch], selector: {matchLabels: {tier: gold}}, handlers: [
		{id: app, apply: {web: {apiVersion: apps/v1, kind: Deployment, metadata: {name: "${self.metadata.name}"}, spec: {replicas: "${self.spec.size}"}}}},
		{id: backup, causes: [delete], apply: {job: {readyWhen: child.status.succeeded > 0, template: {apiVersion: batch/v1, kind: Job, metadata: {name: "${self.metadata.name}-backup"}, spec: {parallelism: 1}}}}}]}`
	for name, between := range map[string]func(s *scene.Stage){
		"it comes back before the backup is done": func(s *scene.Stage) {},
		"a restart in between":                    func(s *scene.Stage) { s.Process.Kill(); s.Process.Restart() },
	} {
		t.Run(name, func(t *testing.T) {
			scene.PlayYAML(t, text, func(s *scene.Stage) {
				s.Launch()
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, labels: {tier: gold}}, spec: {size: 1}}`)
				s.Forget()
				s.Set("lead", "metadata", "labels", "tier")
				s.Settle()
				if s.Get(scene.Jobs, "default", "web-backup") == nil {
					t.Fatal("no backup is made")
				}
				between(s)
				s.Settle()
				s.Set("gold", "metadata", "labels", "tier") // it lives on
				s.Settle()
				s.Update(scene.Jobs, "default", "web-backup", func(o *unstructured.Unstructured) { o.Object["status"] = map[string]any{"succeeded": int64(1)} })
				uid := s.Get(scene.Jobs, "default", "web-backup").GetUID()
				s.Advance(time.Hour)
				s.Resize(7)
				s.Advance(time.Hour)
				s.WantFinalizers(scene.Finalizer)
				s.Set("lead", "metadata", "labels", "tier")
				s.Advance(time.Hour)
				job := s.Get(scene.Jobs, "default", "web-backup")
				if len(s.Web().GetFinalizers()) == 0 && job != nil && job.GetUID() == uid {
					t.Error("it is let go with the backup of the time before, which lacks what came since")
				}
			})
		})
	}
}

// TestAChildOfADeletionIsKnownUnderAnEarlierName holds that what a delete handler made under another name, before the object
// was changed in its deletion, is known as its child, too.
func TestAChildOfADeletionIsKnownUnderAnEarlierName(t *testing.T) {
	scene.PlayYAML(t, backup(`apply: {job: {onDelete: delete, readyWhen: child.status.succeeded > 0, template:
		{apiVersion: batch/v1, kind: Job, metadata: {name: "${self.metadata.name}-${string(self.spec.size)}"}, spec: {parallelism: 1}}}}`), func(s *scene.Stage) {
		s.Begin()
		s.Remove()
		s.Settle()
		s.Resize(2)
		s.Advance(time.Minute)
		s.Update(scene.Jobs, "default", "web-2", func(o *unstructured.Unstructured) { o.Object["status"] = map[string]any{"succeeded": int64(1)} })
		s.Advance(10 * time.Minute)
		if left := s.List(scene.Jobs, ""); s.Web() != nil || len(left) > 0 {
			t.Errorf("the object is gone: %v; Jobs that are left: %d; %v", s.Web() == nil, len(left), s.Events())
		}
	})
}
