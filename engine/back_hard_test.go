// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestVersionsThatGoBackInHardCases holds that no child which its restored owner wants is deleted, and that it is kept from then
// on, when other things happen while etcd is set back.
func TestVersionsThatGoBackInHardCases(t *testing.T) {
	keeps := func(foo *dsl.Resource, j *journal) {
		foo.Owns(configMaps)
		foo.OnReconcile("copies", j.Note("copies", sized))
	}
	for name, meanwhile := range map[string]func(s *stage, restore func()){
		"it is set back twice": func(s *stage, restore func()) {
			restore()
			s.Advance(time.Second)
			again := s.Backup()
			s.size(2)
			s.fill("second", 100)
			s.Advance(2 * time.Second)
			again()
		},
		"it is set back twice, after all was listed again": func(s *stage, restore func()) {
			restore()
			s.CutWatches()
			s.Advance(5 * time.Minute)
			again := s.Backup()
			s.size(2)
			s.fill("second", 100)
			s.Advance(time.Minute)
			again()
		},
		"the process ends": func(s *stage, restore func()) {
			restore()
			s.Advance(time.Second)
			s.Process.Restart()
		},
		"it cannot be reached for a while": func(s *stage, restore func()) {
			s.Process.Sever()
			restore()
			s.Advance(10 * time.Minute)
			s.Process.Restore()
		},
		"children cannot be listed for a while": func(s *stage, restore func()) {
			restore()
			end := s.FailWhile("list", configMaps, errAgain)
			s.CutWatches()
			s.Advance(5 * time.Minute)
			end()
		},
		"owners cannot be listed for a while, and children are": func(s *stage, restore func()) {
			restore()
			ends := []func() int{s.FailWhile("list", foos, errAgain), s.FailWhile("watch", foos, errAgain)}
			s.CutWatches(foos)
			s.ExpireWatches(configMaps)
			s.Advance(5 * time.Minute)
			for _, end := range ends {
				end()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			perform(t, scenario{keeps, func(s *stage) {
				s.begin()
				s.size(17)
				s.Settle()
				before := s.uids()
				s.Advance(time.Minute)
				restore := s.Backup()
				s.size(1)
				s.fill("later", 100)
				s.Advance(time.Minute)
				if left := s.uids(); len(left) != 1 {
					s.t.Fatalf("%d children are left, want 1", len(left))
				}
				meanwhile(s, restore)
				s.CutWatches()
				s.Advance(10 * time.Minute)
				if diff := cmp.Diff(before, s.uids()); diff != "" {
					s.t.Errorf("children (-want +got):\n%s", diff)
				}
				s.size(3)
				s.Advance(time.Minute)
				if left := s.uids(); len(left) != 3 {
					s.t.Errorf("%d children are left, want 3", len(left))
				}
			}})
		})
	}
}

// removesUnwanted is sized for children with names.
func removesUnwanted(ctx ctx, r *dsl.Request) error {
	all, err := r.Children.All()
	for _, c := range all {
		var n int64
		if _, wrong := fmt.Sscanf(c.Name, "n%d", &n); err == nil && wrong == nil && n >= sizeOf(r.Object) {
			err = r.Children.Remove(ctx, c)
		}
	}
	for i := range sizeOf(r.Object) {
		if err != nil {
			return err
		}
		_, err = r.Children.Apply(ctx, map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprintf("web-%d", i)},
		}, dsl.ChildSpec{Handler: "copies", Name: fmt.Sprint("n", i)})
	}
	return err
}

// TestNothingIsTakenAwayWhileVersionsAreBack holds that no child is deleted, and none leaves its owner's record, before the owner's
// feed and that of the child have listed again.
func TestNothingIsTakenAwayWhileVersionsAreBack(t *testing.T) {
	// slow makes it take a while until a resource is listed again.
	slow := func(s *stage, resource string) {
		s.DelayNext("list", resource, 20*time.Second)
		s.DelayNext("watch", resource, 20*time.Second)
	}
	for name, handler := range map[string]dsl.Func{"a handler that deletes": sized, "a handler that removes": removesUnwanted} {
		t.Run(name+" runs before owners are listed again", func(t *testing.T) {
			perform(t, scenario{func(foo *dsl.Resource, _ *journal) {
				foo.Owns(configMaps)
				foo.OnReconcile("copies", handler)
			}, func(s *stage) {
				s.begin()
				s.size(3)
				s.Settle()
				before := s.uids()
				s.Advance(time.Minute)
				restore := s.Backup()
				s.size(0)
				s.fill("later", 100)
				s.Advance(time.Minute)
				if left := s.uids(); len(left) > 0 {
					s.t.Fatalf("%d children are left, want none", len(left))
				}
				restore()
				slow(s, foos)
				s.ExpireWatches(configMaps)
				s.Advance(10 * time.Minute)
				if diff := cmp.Diff(before, s.uids()); len(before) != 3 || diff != "" {
					s.t.Errorf("children (-want +got):\n%s", diff)
				}
			}})
		})
	}
	operator := func(foo *dsl.Resource, j *journal) {
		keepsOnChange(foo, j)
		notesColor(foo)
	}
	begins := func(s *stage) {
		s.elsewhere()
		s.begin()
		s.Advance(time.Minute)
	}
	scenarios(t, map[string]scenario{
		"an owner is written before its child's kind is listed again": {operator, func(s *stage) {
			begins(s)
			restore := s.Backup()
			s.Delete(configMaps, "elsewhere", "web")
			s.Settle()
			s.set("blue", "spec", "color")
			s.fill("later", 100)
			s.Advance(time.Minute)
			restore()
			slow(s, configMaps)
			s.ExpireWatches(foos)
			s.Advance(time.Second)
			s.set("green", "spec", "color")
			s.Advance(10 * time.Minute)
			s.at(`metadata.annotations["example.com/color"]`, "green")
			s.value("elsewhere", "x")
			s.leavesNothing()
		}},
		"a child was gone, and its owner was not written since": {operator, func(s *stage) {
			begins(s)
			restore := s.Backup()
			s.Delete(configMaps, "elsewhere", "web")
			s.fill("later", 100)
			s.Advance(time.Minute)
			restore()
			s.ExpireWatches(foos)
			s.Advance(10 * time.Minute)
			s.value("elsewhere", "x")
			s.leavesNothing()
		}},
		"a child was gone, and its owner is written before its kind is listed again": {operator, func(s *stage) {
			begins(s)
			restore := s.Backup()
			s.set("blue", "spec", "color")
			s.Settle()
			s.Delete(configMaps, "elsewhere", "web")
			s.fill("later", 100)
			s.Advance(time.Minute)
			restore()
			slow(s, configMaps)
			s.ExpireWatches(foos)
			s.Advance(time.Second)
			s.set("green", "spec", "color")
			s.Advance(10 * time.Minute)
			s.value("elsewhere", "x")
			s.leavesNothing()
		}},
		"an owner that is being deleted is back before its child": {operator, func(s *stage) {
			begins(s)
			s.Process.Sever()
			s.remove()
			restore := s.Backup()
			s.Process.Restore()
			s.fill("later", 100)
			s.Advance(10 * time.Minute)
			s.leftNothing()
			restore()
			s.value("elsewhere", "x")
			slow(s, configMaps)
			s.ExpireWatches(foos)
			s.Advance(10 * time.Minute)
			s.leftNothing()
		}},
	})
}
