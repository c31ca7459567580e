// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package outages_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// versionOf is an object's version as a number.
func versionOf(t *testing.T, o *unstructured.Unstructured) int {
	t.Helper()
	n, err := strconv.Atoi(o.GetResourceVersion())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestResumedWatchesShowThatVersionsWentBack holds that a set-back is noticed soon after watches were resumed, though they
// are silent and the operator asks for nothing.
func TestResumedWatchesShowThatVersionsWentBack(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"the restored object is handled": {Operator: func(foo *dsl.Resource, _ *kit.Journal) { foo.OnReconcile("see", scene.ReportsSeen) }, Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(time.Minute)
			restore := s.Backup()
			s.Resize(2)
			s.RaiseVersions("later", 100)
			s.Settle()
			restore()
			s.CutWatches()
			s.Settle()
			s.Resize(3) // at a version that a resumed watch does not show
			s.Advance(20 * time.Second)
			if seen, _, _ := unstructured.NestedInt64(s.Web().Object, "status", "seen"); seen != 3 {
				s.T.Errorf("the status says size %d, want 3", seen)
			}
			scene.WantWell(s)
		}},
		"a labelled child that came back goes with its owner": {Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.On([]dsl.Cause{dsl.Create, dsl.Update}, "child", scene.KeepsConfigMap(dsl.ChildSpec{Ownership: dsl.Labelled}))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(time.Minute)
			restore := s.Backup()
			s.Delete(scene.ConfigMaps, "default", "web")
			s.RaiseVersions("later", 50)
			s.Settle()
			restore()
			s.CutWatches()
			s.Remove()
			s.Advance(30 * time.Second)
			if s.Web() != nil || s.Get(scene.ConfigMaps, "default", "web") != nil {
				s.T.Error("the owner or its child is there still")
			}
		}},
	})
}

// TestOwnWritesAreForgottenWhenVersionsGoBack holds that what was known of the operator's own writes does not count for
// versions that are given out again.
func TestOwnWritesAreForgottenWhenVersionsGoBack(t *testing.T) {
	var second atomic.Bool
	scene.PlayAll(t, map[string]scene.Scenario{
		"a child's change with the version of an own write is news": {Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.OnReconcile("child", func(ctx context.Context, r *dsl.Request) error {
				text := "first"
				if second.Load() {
					text = "second"
				} else {
					r.RunAgain(30 * time.Second)
				}
				_, err := r.Children.Apply(ctx, map[string]any{
					"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": r.Object.GetName()}, "data": map[string]any{"text": text},
				})
				return err
			})
		}, Play: func(s *scene.Stage) {
			s.Begin()
			restore := s.Backup()
			s.HoldWatches(scene.ConfigMaps)
			second.Store(true)
			s.Advance(time.Minute)
			wrote := versionOf(s.T, s.Get(scene.ConfigMaps, "default", "web"))
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: later}}`) // the cache is at its version
			s.Settle()
			restore()
			s.Update(scene.ConfigMaps, "default", "web", func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"text": "another"} })
			if got := versionOf(s.T, s.Get(scene.ConfigMaps, "default", "web")); got != wrote {
				s.T.Fatalf("the child has version %d, want %d again", got, wrote)
			}
			s.ExpireWatches(scene.Foos) // the children are listed for the alarm, so held events are not delivered
			s.Advance(time.Minute)
			s.ReleaseWatches(scene.ConfigMaps)
			s.Advance(time.Minute)
			if text, _, _ := unstructured.NestedString(s.Get(scene.ConfigMaps, "default", "web").Object, "data", "text"); text != "second" {
				s.T.Errorf("the child says %q, want second", text)
			}
		}},
		"a kind is entered into the register again": {Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.OnReconcile("children", func(ctx context.Context, r *dsl.Request) error {
				if size, _, _ := unstructured.NestedInt64(r.Object.Object, "spec", "size"); size < 2 {
					return nil
				}
				return scene.KeepsConfigMap(dsl.ChildSpec{})(ctx, r)
			})
		}, Play: func(s *scene.Stage) {
			s.Process = s.Start(s.Operator, func(with *engine.Settings) { with.Namespace = "default" })
			s.Create(scene.Web)
			s.Settle()
			restore := s.Backup()
			s.Resize(2)
			s.Settle()
			if s.Get(scene.ConfigMaps, "default", "op-children") == nil {
				s.T.Fatal("there is no register")
			}
			s.RaiseVersions("later", 50)
			s.Settle()
			restore()
			s.CutWatches()
			s.Advance(20 * time.Second)
			s.Resize(2)
			s.Advance(20 * time.Second)
			if s.Get(scene.ConfigMaps, "default", "web") == nil || s.Get(scene.ConfigMaps, "default", "op-children") == nil {
				s.T.Error("the child or the register is not there")
			}
		}},
	})
}
