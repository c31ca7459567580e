// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package secrets_test

import (
	"context"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAWriteIsAwaitedAlsoIfTheKeyWasMissing holds that the first reconcile over a Secret waits until the cache shows what another
// handler has written to it, also if reconciles could not begin before, because the key of digests was missing.
func TestAWriteIsAwaitedAlsoIfTheKeyWasMissing(t *testing.T) {
	marks := func(foo *dsl.Resource, _ *kit.Journal) {
		foo.OnReconcile("marks", func(ctx context.Context, r *dsl.Request) error {
			fields := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "pin", "labels": map[string]any{"a": "b"}}}
			_, err := r.Targets.Patch(ctx, fields, dsl.TargetSpec{Key: "pin"})
			return err
		})
	}
	scene.Play(t, scene.Scenario{Operator: marks, Play: func(s *scene.Stage) {
		s.Operator.Resource(scene.Secrets, func(secret *dsl.Resource) {
			secret.On(scene.CreateAndUpdate(), "changed", s.Note("changed"))
		})
		s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: ops}}`)
		s.Forbid("create", scene.Secrets, "ops")
		launchInOps(s)
		s.Create(short)
		s.Settle()
		s.HoldWatches(scene.Secrets)
		s.Create(scene.Web)
		s.Settle()
		if s.Get(scene.Secrets, "default", "pin").GetLabels()["a"] != "b" {
			t.Fatal("the Secret is not patched")
		}
		s.Advance(20 * time.Second) // the Secret's reconcile fails again
		s.Allow("create", scene.Secrets, "ops")
		s.Advance(20 * time.Second)
		s.Called()
		s.ReleaseWatches(scene.Secrets)
		s.Advance(time.Second)
		s.Called("changed create")
	}})
}
