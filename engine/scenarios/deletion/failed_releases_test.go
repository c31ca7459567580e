// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package deletion_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// errFull is the error of a server without space.
var errFull = apierrors.NewInternalError(errors.New("no space left"))

const (
	begins = `"msg"="reconcile could not be finished" .*no space left`
	ends   = `"msg"="reconcile finished again" .*"name"="web"`
)

// isSum reports whether a line sums up failures that go on.
func isSum(line string) bool { return strings.Contains(line, `"msg"="objects still fail"`) }

// TestAReleaseThatFailsIsTriedMoreAndMoreRarely holds that an object that left the selector is released as others are written: each
// failure doubles the wait, and the log has the first failure and the end, also if the object comes back.
func TestAReleaseThatFailsIsTriedMoreAndMoreRarely(t *testing.T) {
	for name, back := range map[string]bool{"the server has space again": false, "the object comes back": true} {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{
				Operator: func(foo *dsl.Resource, j *kit.Journal) {
					foo.LabelSelector = "tier=gold"
					foo.OnDelete("left", j.Note("left"))
				},
				Play: func(s *scene.Stage) {
					log := scene.LaunchWithLog(s, "web")
					log()
					s.Create(scene.Web)
					s.LabelTier("gold")
					s.WantFinalizers(scene.Finalizer)
					end := s.FailWhile("patch", scene.Foos, errFull)
					s.LabelTier("iron")
					s.Advance(10 * time.Minute)
					if n := end(); n < 8 || n > 12 {
						t.Errorf("the release was tried %d times", n)
					}
					if back {
						s.LabelTier("gold")
					}
					s.Advance(10 * time.Minute)
					s.WantLines(func() []string { return slices.DeleteFunc(log(), isSum) }, begins, ends)
				},
			})
		})
	}
}

// namesakes is an operator whose handlers make a child for each object, and which remembers the UID of each object.
func namesakes(found *[]string) func(foo *dsl.Resource, j *kit.Journal) {
	return func(foo *dsl.Resource, j *kit.Journal) {
		foo.Owns(scene.ConfigMaps)
		foo.OnReconcile("sync", j.Note("sync", func(ctx context.Context, r *dsl.Request) error {
			uid := string(r.Object.GetUID())
			r.Memo.Set("uid", uid)
			child := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "of-" + uid}}}
			_, err := r.Children.Apply(ctx, child, dsl.ChildSpec{Handler: "sync", Name: "child", Ownership: dsl.Labelled})
			return err
		}))
		foo.OnDelete("left", func(_ context.Context, r *dsl.Request) error {
			if uid, _ := r.Memo.Get("uid"); uid != string(r.Object.GetUID()) {
				*found = append(*found, "none")
				return nil
			}
			*found = append(*found, "its own")
			return nil
		})
	}
}

// TestADeletedObjectThatFailsLeavesItsNamesakesAlone holds that the state of a deleted object lasts while an earlier object of its name
// cannot be finished, and that the log has the beginning and the end of that, whatever happens to the later ones.
func TestADeletedObjectThatFailsLeavesItsNamesakesAlone(t *testing.T) {
	var found []string
	scene.Play(t, scene.Scenario{Operator: namesakes(&found), Play: func(s *scene.Stage) {
		log := scene.LaunchWithLog(s, `"msg"="reconcile`)
		forced := func() { // somebody removes the finalizers, and no reconcile comes in between
			s.HoldWatches(scene.Foos)
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			s.Delete(scene.Foos, "default", "web")
			s.ReleaseWatches(scene.Foos)
			s.Settle()
		}
		s.Create(scene.Web)
		s.Settle()
		end := s.FailWhile("delete", scene.ConfigMaps, errFull)
		forced()
		s.Create(scene.Web)
		s.Advance(time.Minute)
		forced()
		s.Advance(time.Minute)
		if n := end(); n > 14 {
			t.Errorf("the child was deleted %d times", n)
		}
		s.WantLines(log, begins)
		s.Advance(10 * time.Minute)
		s.WantLines(log, ends)
		if diff := cmp.Diff([]string{"its own", "its own"}, found); diff != "" {
			t.Errorf("the memos that delete handlers found (-want +got):\n%s", diff)
		}
		if left := s.List(scene.ConfigMaps, "default"); len(left) > 0 {
			t.Errorf("there are %d children", len(left))
		}
	}})
}

// TestAFailedDeletionIsRetriedWhileItsNamesakeWaits holds that the retries of a deleted object go on as usual while the living object of
// its name waits for the cache: it has an own write that the cache does not show.
func TestAFailedDeletionIsRetriedWhileItsNamesakeWaits(t *testing.T) {
	var found []string
	scene.Play(t, scene.Scenario{Operator: namesakes(&found), Play: func(s *scene.Stage) {
		s.Launch()
		s.Create(scene.Web)
		s.Settle()
		end := s.FailWhile("delete", scene.ConfigMaps, errFull)
		s.HoldWatches(scene.Foos)
		s.HoldWatches(scene.ConfigMaps)
		s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
		s.Delete(scene.Foos, "default", "web")
		s.Create(scene.Web)
		s.ReleaseWatches(scene.Foos)
		s.Advance(time.Minute)
		if n := end(); n < 6 || n > 9 {
			t.Errorf("the child was deleted %d times in a minute, want about 7", n)
		}
		s.ReleaseWatches(scene.ConfigMaps)
		s.Advance(10 * time.Minute)
		if left := s.List(scene.ConfigMaps, "default"); len(left) != 1 {
			t.Errorf("there are %d children, want that of the living object", len(left))
		}
	}})
}
