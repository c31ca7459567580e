// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestChildrenGoWithAnOwnerThatLostItsFinalizer holds that labelled children go with an owner that is being deleted without the
// operator's finalizer, however it was lost.
func TestChildrenGoWithAnOwnerThatLostItsFinalizer(t *testing.T) {
	keeps := func(foo *dsl.Resource, _ *kit.Journal) {
		foo.Owns(scene.ConfigMaps)
		foo.On([]dsl.Cause{dsl.Create, dsl.Update}, "child", scene.KeepsConfigMap(dsl.ChildSpec{Ownership: dsl.Labelled}))
	}
	finalizers := func(s *scene.Stage, names ...string) {
		s.T.Helper()
		s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(names) })
	}
	childless := func(s *scene.Stage) {
		s.T.Helper()
		if s.Get(scene.ConfigMaps, "default", "web") != nil {
			s.T.Error("the child is left behind")
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"another controller overwrote it while no process ran": {Operator: keeps, Play: func(s *scene.Stage) {
			s.Begin()
			s.Process.Kill()
			finalizers(s, "example.com/hold")
			s.Remove()
			s.Process.Restart()
			s.Advance(time.Minute)
			childless(s)
			s.Forget()
			s.Process.Restart()
			s.Advance(time.Hour)
			s.Wrote() // the record is there still
			finalizers(s)
			s.Settle()
			if s.Web() != nil {
				s.T.Error("the owner is there still")
			}
		}},
		"somebody took it off while the owner was being deleted": {Operator: keeps, Play: func(s *scene.Stage) {
			s.Begin()
			finalizers(s, scene.Finalizer, "example.com/hold")
			s.Forbid("delete", "configmaps")
			s.Remove()
			s.Advance(time.Minute)
			finalizers(s, "example.com/hold")
			s.Advance(time.Minute)
			s.Allow("delete", "configmaps")
			s.Advance(6 * time.Minute)
			childless(s)
		}},
		"the owner goes before the child can be deleted": {Operator: keeps, Play: func(s *scene.Stage) {
			s.Begin()
			s.Process.Kill()
			finalizers(s, "example.com/hold")
			s.Forbid("delete", "configmaps")
			s.Remove()
			s.Process.Restart()
			s.Advance(time.Minute)
			finalizers(s)
			s.Advance(time.Minute)
			s.Allow("delete", "configmaps")
			s.Advance(6 * time.Minute)
			childless(s)
		}},
		"it was deleted in the foreground": {Operator: keeps, Play: func(s *scene.Stage) {
			s.Begin()
			s.Process.Kill()
			finalizers(s, "foregroundDeletion")
			s.Remove()
			s.Process.Restart()
			s.Advance(time.Minute)
			childless(s)
		}},
		"a delete handler had failed for good": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			keeps(foo, j)
			foo.OnDelete("farewell", scene.Fails(dsl.Permanent(scene.ErrAgain)))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			finalizers(s, scene.Finalizer, "example.com/hold")
			s.Remove()
			s.Advance(time.Minute)
			if s.Get(scene.ConfigMaps, "default", "web") == nil {
				s.T.Error("the child is gone while a delete handler holds its owner")
			}
			finalizers(s, "example.com/hold")
			s.Advance(time.Minute)
			childless(s)
		}},
	})
}
