// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAnEarlierVersionOfAChildIsNoEcho restores the cluster between an own write to a child and its event, so that the write is lost, and its
// version is given to somebody else's. The caches are no newer than the restored state, so nothing shows that the versions have gone back.
func TestAnEarlierVersionOfAChildIsNoEcho(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
		foo.Owns(scene.Deployments)
		foo.OnReconcile("child", j.Note("child", func(ctx context.Context, r *dsl.Request) error {
			if err := scene.TakesTime(time.Second)(ctx, r); err != nil {
				return err
			}
			return scene.KeepsDeployment(ctx, r)
		}))
	}, Play: func(s *scene.Stage) {
		s.Begin()
		s.Advance(time.Minute)
		s.Forget()
		setsOf(int64(7), "spec", "replicas")(s)
		s.Settle()
		s.HoldWatches()
		restore := s.Backup()
		s.Advance(10 * time.Second)
		s.Wrote("patch deployments default/web")
		lost := s.Get(scene.Deployments, "default", "web").GetResourceVersion()
		restore()
		setsOf(int64(8), "spec", "replicas")(s)
		if got := s.Get(scene.Deployments, "default", "web").GetResourceVersion(); got != lost {
			t.Fatalf("the other write has version %s, want %s", got, lost)
		}
		s.ExpireWatches()
		s.ReleaseWatches()
		s.Advance(5 * time.Minute)
		if got := scene.ValueAt(s.Get(scene.Deployments, "default", "web"), "spec.replicas"); got != int64(1) {
			t.Errorf("the child has %v replicas", got)
		}
		s.Take()
	}})
}
