// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package outages_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// errLooping ends a loop that would else go on without time passing.
var errLooping = dsl.Permanent(errors.New("called more than 100 times"))

// keepsCopies declares a handler that keeps as many ConfigMaps as the size says.
func keepsCopies(foo *dsl.Resource, j *kit.Journal) {
	foo.Owns(scene.ConfigMaps)
	foo.OnReconcile("copies", j.Note("copies", scene.KeepsConfigMaps))
}

// TestARestoredBackupIsHandledThoughNoWatchShowsIt holds what happens after etcd was set back to an older snapshot, when no
// watch reports it.
func TestARestoredBackupIsHandledThoughNoWatchShowsIt(t *testing.T) {
	// beats writes at each tick, from what the cache has.
	beats := func(foo *dsl.Resource, j *kit.Journal) {
		n := int64(0)
		foo.Every(10*time.Second, "beat", j.Note("beat", func(ctx context.Context, r *dsl.Request) error {
			if n++; n > 100 {
				return errLooping
			}
			r.Patch.SetStatus("beats", n)
			return scene.ReportsSeen(ctx, r)
		}))
	}
	for how, resume := range map[string]func(s *scene.Stage){
		"the watches go on":    func(*scene.Stage) {},
		"watches are resumed":  func(s *scene.Stage) { s.CutWatches() },
		"the server is behind": func(s *scene.Stage) { s.HoldWatches(); s.CutWatches() },
	} {
		scene.PlayAll(t, map[string]scene.Scenario{
			"a pass that meets an older object backs off, " + how: {Operator: beats, Play: func(s *scene.Stage) {
				s.Begin()
				s.Advance(time.Minute)
				restore := s.Backup()
				s.Resize(2)
				s.RaiseVersions("later", 100)
				s.Forget()
				restore()
				resume(s)
				s.Advance(45 * time.Second)
				if calls, writes := len(s.Take()), len(s.Writes()); calls > 10 || writes > 10 {
					s.T.Errorf("%d calls and %d writes in 45 s", calls, writes)
				}
				s.ReleaseWatches()
				s.Advance(time.Minute)
				if seen, _, _ := unstructured.NestedInt64(s.Web().Object, "status", "seen"); seen != 1 {
					s.T.Errorf("the status says size %d, want that of the restored object", seen)
				}
				scene.WantWell(s)
			}},
			"no child is deleted because its kind is listed before its owner, " + how: {Operator: keepsCopies, Play: func(s *scene.Stage) {
				s.Begin()
				s.Resize(17)
				s.Settle()
				before := s.ConfigMapUIDs()
				s.Advance(time.Minute)
				restore := s.Backup()
				s.Resize(1)
				s.RaiseVersions("later", 100)
				s.Settle()
				if left := s.ConfigMapUIDs(); len(left) != 1 {
					s.T.Fatalf("%d children are left, want 1", len(left))
				}
				restore()
				resume(s)
				s.Advance(5 * time.Second)
				s.ReleaseWatches()
				s.ExpireWatches(scene.ConfigMaps)
				s.Advance(time.Minute)
				if diff := cmp.Diff(before, s.ConfigMapUIDs()); diff != "" {
					s.T.Errorf("children (-want +got):\n%s", diff)
				}
				s.Resize(2)
				s.Advance(10 * time.Second)
				if left := s.ConfigMapUIDs(); len(left) != 2 {
					s.T.Errorf("%d children are left, want 2", len(left))
				}
				scene.WantWell(s)
			}},
		})
	}
}

// TestNothingIsDoneFromBeforeARestoredBackup holds that a process lists again, and that what it knew of its own writes does not
// count.
func TestNothingIsDoneFromBeforeARestoredBackup(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"no child is applied before its kind is listed again": {Operator: keepsCopies, Play: func(s *scene.Stage) {
			s.Begin()
			s.Resize(9)
			s.Settle()
			before := s.ConfigMapUIDs()
			s.Advance(time.Minute)
			restore := s.Backup()
			s.Resize(1)
			s.RaiseVersions("later", 100)
			s.Settle()
			busy := apierrors.NewServiceUnavailable("it is busy")
			lists, watches := s.FailWhile("list", scene.ConfigMaps, busy), s.FailWhile("watch", scene.ConfigMaps, busy)
			restore()
			s.ExpireWatches()
			s.Writes()
			s.Advance(30 * time.Second)
			if got := s.Writes(); len(got) > 0 { // the cache lacks children that are there
				s.T.Errorf("writes %v before the children are listed", got)
			}
			lists()
			watches()
			s.Advance(time.Minute)
			if got := s.Writes(); slices.ContainsFunc(got, func(w kit.Write) bool { return w.Resource == "configmaps" }) {
				s.T.Errorf("writes %v", got)
			}
			if diff := cmp.Diff(before, s.ConfigMapUIDs()); diff != "" {
				s.T.Errorf("children (-want +got):\n%s", diff)
			}
			scene.WantWell(s)
		}},
		"a process stays ready, and says that it lists again": {Operator: keepsCopies, Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(time.Minute)
			restore := s.Backup()
			s.Resize(2)
			s.RaiseVersions("later", 100)
			s.Settle()
			s.DelayNext("watch", scene.ConfigMaps, 10*time.Second)
			restore()
			s.ExpireWatches(scene.Foos, scene.ConfigMaps)
			s.Advance(5 * time.Second)
			const want = "[+]child/foos.v1.example.com/configmaps.v1 ok: listing again, because the API server's versions have gone back"
			s.Settle()
			all := s.Process.Engine().Ready()
			if !slices.ContainsFunc(all, func(c ops.Check) bool { return c.String() == want }) || slices.ContainsFunc(all, func(c ops.Check) bool { return c.State != ops.Pass }) {
				s.T.Errorf("it says %v, want %s", all, want)
			}
			s.Advance(10 * time.Second)
			scene.WantWell(s)
		}},
		"a write that was forgotten is not waited for": {Operator: keepsCopies, Play: func(s *scene.Stage) {
			s.Begin()
			restore := s.Backup()
			s.RaiseVersions("later", 100)
			s.HoldWatches(scene.ConfigMaps)
			s.Resize(2)
			s.Called("copies update")
			restore()
			s.ExpireWatches(scene.Foos)
			s.ReleaseWatches(scene.ConfigMaps)
			s.Advance(5 * time.Second)
			s.Forget()
			s.Resize(3)
			s.Advance(5 * time.Second)
			if got := s.Take(); !slices.Contains(got, "copies update") || len(s.ConfigMapUIDs()) != 3 {
				s.T.Errorf("the calls were %v, and there are %d children", got, len(s.ConfigMapUIDs()))
			}
			scene.WantWell(s)
		}},
		"a change that gets the version of one that was forgotten is news": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("see", j.Note("see", scene.ReportsSeen))
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				restore := s.Backup()
				s.Resize(2)
				s.Forget()
				version := s.Web().GetResourceVersion()
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: later}}`) // the cache is at its version
				s.Forget()
				s.HoldWatches(scene.Foos)
				restore()
				s.Resize(4)
				s.Resize(5)
				if got := s.Web().GetResourceVersion(); got != version {
					s.T.Fatalf("the object has version %s, want %s again", got, version)
				}
				s.ExpireWatches(scene.Foos)
				s.Advance(2 * time.Minute)
				if seen, _, _ := unstructured.NestedInt64(s.Web().Object, "status", "seen"); seen != 5 {
					s.T.Errorf("the status says size %d, want 5", seen)
				}
			},
		},
	})
}
