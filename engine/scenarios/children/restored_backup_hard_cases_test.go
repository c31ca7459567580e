// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestARestoredBackupCostsNoWantedChildInHardCases holds that no child which its restored owner wants is deleted, and that
// it is kept from then on, when other things happen while etcd is set back.
func TestARestoredBackupCostsNoWantedChildInHardCases(t *testing.T) {
	keeps := func(foo *dsl.Resource, j *kit.Journal) {
		foo.Owns(scene.ConfigMaps)
		foo.OnReconcile("copies", j.Note("copies", scene.KeepsConfigMaps))
	}
	for name, meanwhile := range map[string]func(s *scene.Stage, restore func()){
		"it is set back twice": func(s *scene.Stage, restore func()) {
			restore()
			s.Advance(time.Second)
			again := s.Backup()
			s.Resize(2)
			s.RaiseVersions("second", 100)
			s.Advance(2 * time.Second)
			again()
		},
		"it is set back twice, after all was listed again": func(s *scene.Stage, restore func()) {
			restore()
			s.CutWatches()
			s.Advance(5 * time.Minute)
			again := s.Backup()
			s.Resize(2)
			s.RaiseVersions("second", 100)
			s.Advance(time.Minute)
			again()
		},
		"the process ends": func(s *scene.Stage, restore func()) {
			restore()
			s.Advance(time.Second)
			s.Process.Restart()
		},
		"it cannot be reached for a while": func(s *scene.Stage, restore func()) {
			s.Process.Sever()
			restore()
			s.Advance(10 * time.Minute)
			s.Process.Restore()
		},
		"children cannot be listed for a while": func(s *scene.Stage, restore func()) {
			restore()
			end := s.FailWhile("list", scene.ConfigMaps, scene.ErrAgain)
			s.CutWatches()
			s.Advance(5 * time.Minute)
			end()
		},
		"owners cannot be listed for a while, and children are": func(s *scene.Stage, restore func()) {
			restore()
			ends := []func() int{s.FailWhile("list", scene.Foos, scene.ErrAgain), s.FailWhile("watch", scene.Foos, scene.ErrAgain)}
			s.CutWatches(scene.Foos)
			s.ExpireWatches(scene.ConfigMaps)
			s.Advance(5 * time.Minute)
			for _, end := range ends {
				end()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: keeps, Play: func(s *scene.Stage) {
				s.Begin()
				s.Resize(17)
				s.Settle()
				before := s.ConfigMapUIDs()
				s.Advance(time.Minute)
				restore := s.Backup()
				s.Resize(1)
				s.RaiseVersions("later", 100)
				s.Advance(time.Minute)
				if left := s.ConfigMapUIDs(); len(left) != 1 {
					s.T.Fatalf("%d children are left, want 1", len(left))
				}
				meanwhile(s, restore)
				s.CutWatches()
				s.Advance(10 * time.Minute)
				if diff := cmp.Diff(before, s.ConfigMapUIDs()); diff != "" {
					s.T.Errorf("children (-want +got):\n%s", diff)
				}
				s.Resize(3)
				s.Advance(time.Minute)
				if left := s.ConfigMapUIDs(); len(left) != 3 {
					s.T.Errorf("%d children are left, want 3", len(left))
				}
			}})
		})
	}
}

// removesUnwanted is scene.KeepsConfigMaps for children with names.
func removesUnwanted(ctx context.Context, r *dsl.Request) error {
	all, err := r.Children.All()
	for _, c := range all {
		var n int64
		if _, wrong := fmt.Sscanf(c.Name, "n%d", &n); err == nil && wrong == nil && n >= scene.SizeOf(r.Object) {
			err = r.Children.Remove(ctx, c)
		}
	}
	for i := range scene.SizeOf(r.Object) {
		if err != nil {
			return err
		}
		_, err = r.Children.Apply(ctx, map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprintf("web-%d", i)},
		}, dsl.ChildSpec{Handler: "copies", Name: fmt.Sprint("n", i)})
	}
	return err
}

// TestNoChildGoesUntilARestoredServerIsListed holds that no child is deleted, and none leaves its owner's inventory, before the
// owner's feed and that of the child have listed again.
func TestNoChildGoesUntilARestoredServerIsListed(t *testing.T) {
	// slow makes it take a while until a resource is listed again.
	slow := func(s *scene.Stage, resource string) {
		s.DelayNext("list", resource, 20*time.Second)
		s.DelayNext("watch", resource, 20*time.Second)
	}
	for name, handler := range map[string]dsl.Func{"a handler that deletes": scene.KeepsConfigMaps, "a handler that removes": removesUnwanted} {
		t.Run(name+" runs before owners are listed again", func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, _ *kit.Journal) {
				foo.Owns(scene.ConfigMaps)
				foo.OnReconcile("copies", handler)
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Resize(3)
				s.Settle()
				before := s.ConfigMapUIDs()
				s.Advance(time.Minute)
				restore := s.Backup()
				s.Resize(0)
				s.RaiseVersions("later", 100)
				s.Advance(time.Minute)
				if left := s.ConfigMapUIDs(); len(left) > 0 {
					s.T.Fatalf("%d children are left, want none", len(left))
				}
				restore()
				slow(s, scene.Foos)
				s.ExpireWatches(scene.ConfigMaps)
				s.Advance(10 * time.Minute)
				if diff := cmp.Diff(before, s.ConfigMapUIDs()); len(before) != 3 || diff != "" {
					s.T.Errorf("children (-want +got):\n%s", diff)
				}
			}})
		})
	}
	operator := func(foo *dsl.Resource, j *kit.Journal) {
		keepsOnChange(foo, j)
		notesColor(foo)
	}
	begins := func(s *scene.Stage) {
		s.CreateElsewhere()
		s.Begin()
		s.Advance(time.Minute)
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"an owner is written before its child's kind is listed again": {Operator: operator, Play: func(s *scene.Stage) {
			begins(s)
			restore := s.Backup()
			s.Delete(scene.ConfigMaps, "elsewhere", "web")
			s.Settle()
			s.Set("blue", "spec", "color")
			s.RaiseVersions("later", 100)
			s.Advance(time.Minute)
			restore()
			slow(s, scene.ConfigMaps)
			s.ExpireWatches(scene.Foos)
			s.Advance(time.Second)
			s.Set("green", "spec", "color")
			s.Advance(10 * time.Minute)
			s.WantField(`metadata.annotations["example.com/color"]`, "green")
			wantValue(s, "elsewhere", "x")
			removeWithChild(s)
		}},
		"a child was gone, and its owner was not written since": {Operator: operator, Play: func(s *scene.Stage) {
			begins(s)
			restore := s.Backup()
			s.Delete(scene.ConfigMaps, "elsewhere", "web")
			s.RaiseVersions("later", 100)
			s.Advance(time.Minute)
			restore()
			s.ExpireWatches(scene.Foos)
			s.Advance(10 * time.Minute)
			wantValue(s, "elsewhere", "x")
			removeWithChild(s)
		}},
		"a child was gone, and its owner is written before its kind is listed again": {Operator: operator, Play: func(s *scene.Stage) {
			begins(s)
			restore := s.Backup()
			s.Set("blue", "spec", "color")
			s.Settle()
			s.Delete(scene.ConfigMaps, "elsewhere", "web")
			s.RaiseVersions("later", 100)
			s.Advance(time.Minute)
			restore()
			slow(s, scene.ConfigMaps)
			s.ExpireWatches(scene.Foos)
			s.Advance(time.Second)
			s.Set("green", "spec", "color")
			s.Advance(10 * time.Minute)
			wantValue(s, "elsewhere", "x")
			removeWithChild(s)
		}},
		"an owner that is being deleted is back before its child": {Operator: operator, Play: func(s *scene.Stage) {
			begins(s)
			s.Process.Sever()
			s.Remove()
			restore := s.Backup()
			s.Process.Restore()
			s.RaiseVersions("later", 100)
			s.Advance(10 * time.Minute)
			wantOwnerAndChildGone(s)
			restore()
			wantValue(s, "elsewhere", "x")
			slow(s, scene.ConfigMaps)
			s.ExpireWatches(scene.Foos)
			s.Advance(10 * time.Minute)
			wantOwnerAndChildGone(s)
		}},
	})
}
