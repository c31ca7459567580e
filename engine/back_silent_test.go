// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
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

// TestResumedWatchesShowThatVersionsWentBack holds that a set-back is noticed soon after watches were resumed, though they are silent
// and the operator asks for nothing.
func TestResumedWatchesShowThatVersionsWentBack(t *testing.T) {
	scenarios(t, map[string]scenario{
		"the restored object is handled": {func(foo *dsl.Resource, _ *journal) { foo.OnReconcile("see", reportsSize) }, func(s *stage) {
			s.begin()
			s.Advance(time.Minute)
			restore := s.Backup()
			s.size(2)
			s.fill("later", 100)
			s.Settle()
			restore()
			s.CutWatches()
			s.Settle()
			s.size(3) // at a version that a resumed watch does not show
			s.Advance(20 * time.Second)
			if seen, _, _ := unstructured.NestedInt64(s.web().Object, "status", "seen"); seen != 3 {
				s.t.Errorf("the status says size %d, want 3", seen)
			}
			well(s)
		}},
		"a labelled child that came back goes with its owner": {func(foo *dsl.Resource, _ *journal) {
			foo.Owns(configMaps)
			foo.On([]dsl.Cause{dsl.Create, dsl.Update}, "child", keepsMap(dsl.ChildSpec{Ownership: dsl.Labelled}))
		}, func(s *stage) {
			s.begin()
			s.Advance(time.Minute)
			restore := s.Backup()
			s.Delete(configMaps, "default", "web")
			s.fill("later", 50)
			s.Settle()
			restore()
			s.CutWatches()
			s.remove()
			s.Advance(30 * time.Second)
			if s.web() != nil || s.Get(configMaps, "default", "web") != nil {
				s.t.Error("the owner or its child is there still")
			}
		}},
	})
}

// TestWhatIsForgottenWhenVersionsGoBack holds that what was known of the operator's own writes does not count for versions that
// are given out again.
func TestWhatIsForgottenWhenVersionsGoBack(t *testing.T) {
	var second atomic.Bool
	scenarios(t, map[string]scenario{
		"a child's change with the version of an own write is news": {func(foo *dsl.Resource, _ *journal) {
			foo.Owns(configMaps)
			foo.OnReconcile("child", func(ctx ctx, r *dsl.Request) error {
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
		}, func(s *stage) {
			s.begin()
			restore := s.Backup()
			s.HoldWatches(configMaps)
			second.Store(true)
			s.Advance(time.Minute)
			wrote := versionOf(s.t, s.Get(configMaps, "default", "web"))
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: later}}`) // the cache is at its version
			s.Settle()
			restore()
			s.Update(configMaps, "default", "web", func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"text": "another"} })
			if got := versionOf(s.t, s.Get(configMaps, "default", "web")); got != wrote {
				s.t.Fatalf("the child has version %d, want %d again", got, wrote)
			}
			s.ExpireWatches(foos) // the children are listed for the alarm, so what was held is not told
			s.Advance(time.Minute)
			s.ReleaseWatches(configMaps)
			s.Advance(time.Minute)
			if text, _, _ := unstructured.NestedString(s.Get(configMaps, "default", "web").Object, "data", "text"); text != "second" {
				s.t.Errorf("the child says %q, want second", text)
			}
		}},
		"a kind is entered into the register again": {func(foo *dsl.Resource, _ *journal) {
			foo.Owns(configMaps)
			foo.OnReconcile("children", func(ctx ctx, r *dsl.Request) error {
				if size, _, _ := unstructured.NestedInt64(r.Object.Object, "spec", "size"); size < 2 {
					return nil
				}
				return keepsMap(dsl.ChildSpec{})(ctx, r)
			})
		}, func(s *stage) {
			s.Process = s.Start(s.Operator, func(with *engine.Settings) { with.Namespace = "default" })
			s.Create(web)
			s.Settle()
			restore := s.Backup()
			s.size(2)
			s.Settle()
			if s.Get(configMaps, "default", "op-children") == nil {
				s.t.Fatal("there is no register")
			}
			s.fill("later", 50)
			s.Settle()
			restore()
			s.CutWatches()
			s.Advance(20 * time.Second)
			s.size(2)
			s.Advance(20 * time.Second)
			if s.Get(configMaps, "default", "web") == nil || s.Get(configMaps, "default", "op-children") == nil {
				s.t.Error("the child or the register is not there")
			}
		}},
	})
}
