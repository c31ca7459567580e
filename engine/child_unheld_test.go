// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestChildrenOfAnOwnerThatLostItsFinalizer holds that labelled children go with an owner that is being deleted without the
// operator's finalizer, however it was lost.
func TestChildrenOfAnOwnerThatLostItsFinalizer(t *testing.T) {
	keeps := func(foo *dsl.Resource, _ *journal) {
		foo.Owns(configMaps)
		foo.On([]dsl.Cause{dsl.Create, dsl.Update}, "child", keepsMap(dsl.ChildSpec{Ownership: dsl.Labelled}))
	}
	finalizers := func(s *stage, names ...string) {
		s.t.Helper()
		s.Update(foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(names) })
	}
	childless := func(s *stage) {
		s.t.Helper()
		if s.Get(configMaps, "default", "web") != nil {
			s.t.Error("the child is left behind")
		}
	}
	scenarios(t, map[string]scenario{
		"another controller overwrote it while no process ran": {keeps, func(s *stage) {
			s.begin()
			s.Process.Kill()
			finalizers(s, "example.com/hold")
			s.remove()
			s.Process.Restart()
			s.Advance(time.Minute)
			childless(s)
			s.Forget()
			s.Process.Restart()
			s.Advance(time.Hour)
			s.Wrote() // the record is there still
			finalizers(s)
			s.Settle()
			if s.web() != nil {
				s.t.Error("the owner is there still")
			}
		}},
		"somebody took it off while the owner was being deleted": {keeps, func(s *stage) {
			s.begin()
			finalizers(s, finalizer, "example.com/hold")
			s.Forbid("delete", "configmaps")
			s.remove()
			s.Advance(time.Minute)
			finalizers(s, "example.com/hold")
			s.Advance(time.Minute)
			s.Allow("delete", "configmaps")
			s.Advance(6 * time.Minute)
			childless(s)
		}},
		"the owner goes before the child can be deleted": {keeps, func(s *stage) {
			s.begin()
			s.Process.Kill()
			finalizers(s, "example.com/hold")
			s.Forbid("delete", "configmaps")
			s.remove()
			s.Process.Restart()
			s.Advance(time.Minute)
			finalizers(s)
			s.Advance(time.Minute)
			s.Allow("delete", "configmaps")
			s.Advance(6 * time.Minute)
			childless(s)
		}},
		"it was deleted in the foreground": {keeps, func(s *stage) {
			s.begin()
			s.Process.Kill()
			finalizers(s, "foregroundDeletion")
			s.remove()
			s.Process.Restart()
			s.Advance(time.Minute)
			childless(s)
		}},
		"a delete handler had failed for good": {func(foo *dsl.Resource, j *journal) {
			keeps(foo, j)
			foo.OnDelete("farewell", fails(dsl.Permanent(errAgain)))
		}, func(s *stage) {
			s.begin()
			finalizers(s, finalizer, "example.com/hold")
			s.remove()
			s.Advance(time.Minute)
			if s.Get(configMaps, "default", "web") == nil {
				s.t.Error("the child is gone while a delete handler holds its owner")
			}
			finalizers(s, "example.com/hold")
			s.Advance(time.Minute)
			childless(s)
		}},
	})
}
