// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package writes_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestNoPassStartsFromACacheOlderThanTheLastWrite is law 6: no reconcile starts from a cache that is older than the operator's last
// write. Watches are held, so that the cache cannot catch up.
func TestNoPassStartsFromACacheOlderThanTheLastWrite(t *testing.T) {
	watching := func(write dsl.Func) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.Deployments)
			foo.OnReconcile("child", scene.KeepsDeployment)
			foo.OnReconcile("write", j.Note("write", write))
		}
	}
	counts := func(_ context.Context, r *dsl.Request) error {
		n, _, err := unstructured.NestedInt64(r.Object.Object, "status", "passes")
		r.Patch.SetStatus("passes", n+1)
		return err
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"a reconcile after a write waits until the cache shows it": {Operator: watching(counts), Play: func(s *scene.Stage) {
			s.Begin()
			before := passes(s)
			s.HoldWatches(scene.Foos)
			s.RollOut(1)
			s.Called("write child")
			s.Wrote("patch foos/status default/web")
			s.RollOut(2)
			s.Called()
			s.Advance(10 * time.Minute)
			s.Called()
			s.ReleaseWatches(scene.Foos)
			s.Called("write child")
			if n := passes(s) - before; n != 2 {
				s.T.Errorf("%d passes are counted, want 2: one of them read an older cache", n)
			}
		}},
		"a reconcile after a write to a child waits until the cache shows it": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnReconcile("child", j.Note("child", scene.KeepsDeployment))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.HoldWatches(scene.Deployments)
				s.Resize(2)
				s.Called("child update")
				s.Wrote("patch deployments default/web")
				s.Resize(3)
				s.Called()
				s.Advance(10 * time.Minute)
				s.Called()
				s.ReleaseWatches(scene.Deployments)
				s.Called("child update")
				s.Wrote("patch deployments default/web")
			},
		},
		"a watch that ends while a key is parked does not keep it parked": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnReconcile("child", j.Note("child", scene.KeepsDeployment))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.HoldWatches(scene.Deployments)
				s.Resize(2)
				s.Called("child update")
				s.Resize(3)
				s.Called()
				s.ExpireWatches(scene.Deployments)
				s.Advance(2 * time.Minute)
				s.Called("child update")
			},
		},
		"what is not watched is not waited for": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("write", j.Note("write", scene.WritesElsewhere))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.HoldWatches("configmaps.v1")
				s.Resize(2)
				s.Resize(3)
				s.Settle()
				if got := s.Take(); len(got) == 0 {
					s.T.Error("the object was parked")
				}
			},
		},
		"an object that leaves the selection by the operator's own write is not waited for": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.LabelSelector = "tier=gold"
				foo.OnReconcile("write", j.Note("write", func(_ context.Context, r *dsl.Request) error {
					r.Patch.Label("tier", "iron")
					return nil
				}, scene.Succeeds))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Set("gold", "metadata", "labels", "tier")
				s.Called("write create")
				s.Set("gold", "metadata", "labels", "tier")
				s.Called("write create")
			},
		},
	})
}

// passes is what counts has counted.
func passes(s *scene.Stage) int64 {
	n, _, _ := unstructured.NestedInt64(s.Web().Object, "status", "passes")
	return n
}

// TestEventsOfOwnWritesRunNothing holds that the events of the operator's own writes run nothing.
func TestEventsOfOwnWritesRunNothing(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a child's creation and change by its owner's handler are no news": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnReconcile("child", j.Note("child", scene.KeepsDeployment))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				for i := range int64(20) {
					if i == 0 {
						s.Create(scene.Web)
						s.Called("child create")
						continue
					}
					s.Resize(i + 1)
					s.Called("child update")
				}
			},
		},
		"nor are they when their event comes before the answer": {Operator: scene.OwnsDeployment, Play: func(s *scene.Stage) {
			s.Launch()
			s.DelayNext("patch", scene.Deployments, time.Second)
			s.Create(scene.Web)
			s.Advance(2 * time.Second)
			s.Called("child create")
		}},
		"what somebody else does to a child before the answer comes is news": {Operator: scene.OwnsDeployment, Play: func(s *scene.Stage) {
			s.Launch()
			s.DelayNext("patch", scene.Deployments, time.Second)
			s.Create(scene.Web)
			s.Settle()
			s.RollOut(1)
			s.Advance(2 * time.Second)
			s.Called("child create", "child child")
		}},
		"an own patch of status and annotations is no news": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "report", j.Note("report", scene.Reports))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("report create")
				s.Resize(2)
				s.Called("report update")
			},
		},
	})
}
