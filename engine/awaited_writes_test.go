// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestNothingWaitsForWhatIsGone holds that no memory is left of writes that were waited for.
func TestNothingWaitsForWhatIsGone(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{"children that come and go": {
		Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Limits = &dsl.Limits{Deletions: dsl.DeletionLimits{PerMinute: dsl.Unlimited, Share: dsl.Unlimited}}
			foo.Owns(scene.ConfigMaps)
			foo.OnReconcile("sweep", j.Note("sweep", func(c context.Context, r *dsl.Request) error {
				list, err := r.Children.List(scene.ConfigMaps)
				for _, o := range list {
					if err := r.Children.Delete(c, scene.ConfigMaps, o.GetName()); err != nil {
						return err
					}
					r.Patch.SetStatus("swept", o.GetName())
				}
				return err
			}))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			owner := s.Web()
			for i := range 50 {
				s.HoldWatches(scene.Foos)
				name := fmt.Sprintf("dust-%d", i)
				s.Create(scene.OwnedObject(owner, "v1", "ConfigMap", name))
				s.Advance(time.Second)
				s.Set(name, "metadata", "labels", "last") // news that waits for the write of the status
				s.ReleaseWatches(scene.Foos)
				s.WantField("status.swept", name)
			}
			s.Advance(10 * time.Minute)
			if n := len(s.List(scene.ConfigMaps, "default")); n > 0 {
				s.T.Errorf("%d are left", n)
			}
			if n := engine.Waiting(s.Process.Engine()); n > 0 {
				s.T.Errorf("%d objects are waited for when all is done", n)
			}
		},
	}})
}
