// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// rollout is a change that the Deployment controller would make.
func (s *stage) rollout(n int64) {
	s.t.Helper()
	s.Update(deployments, "default", "web", func(o *unstructured.Unstructured) {
		o.Object["status"] = map[string]any{"replicas": n}
	})
}

// writesElsewhere is a handler that writes to another object.
func writesElsewhere(ctx context.Context, r *dsl.Request) error {
	_, err := r.Client.Apply(ctx, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "other", "namespace": "default"},
	})
	return err
}

// TestOwnWritesFirst is law 6: no pass starts from a cache that is older than the operator's last
// write. Watches are held, so that the cache cannot catch up.
func TestOwnWritesFirst(t *testing.T) {
	watching := func(write dsl.Func) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.Owns(deployments)
			foo.OnReconcile("child", keepsChild)
			foo.OnReconcile("write", j.Note("write", write))
		}
	}
	counts := func(_ context.Context, r *dsl.Request) error {
		n, _, err := unstructured.NestedInt64(r.Object.Object, "status", "passes")
		r.Patch.SetStatus("passes", n+1)
		return err
	}
	scenarios(t, map[string]scenario{
		"a pass after a write waits until the cache shows it": {watching(counts), func(s *stage) {
			s.begin()
			before := passes(s)
			s.HoldWatches(foos)
			s.rollout(1)
			s.Called("write child")
			s.Wrote("patch foos/status default/web")
			s.rollout(2)
			s.Called()
			s.Advance(10 * time.Minute)
			s.Called()
			s.ReleaseWatches(foos)
			s.Called("write child")
			if n := passes(s) - before; n != 2 {
				s.t.Errorf("%d passes are counted, want 2: one of them read an older cache", n)
			}
		}},
		"a pass after a write to a child waits until the cache shows it": {
			func(foo *dsl.Resource, j *journal) {
				foo.Owns(deployments)
				foo.OnReconcile("child", j.Note("child", keepsChild))
			}, func(s *stage) {
				s.begin()
				s.HoldWatches(deployments)
				s.size(2)
				s.Called("child update")
				s.Wrote("patch deployments default/web")
				s.size(3)
				s.Called()
				s.Advance(10 * time.Minute)
				s.Called()
				s.ReleaseWatches(deployments)
				s.Called("child update")
				s.Wrote("patch deployments default/web")
			},
		},
		"a watch that ends while a key is parked does not keep it parked": {
			func(foo *dsl.Resource, j *journal) {
				foo.Owns(deployments)
				foo.OnReconcile("child", j.Note("child", keepsChild))
			}, func(s *stage) {
				s.begin()
				s.HoldWatches(deployments)
				s.size(2)
				s.Called("child update")
				s.size(3)
				s.Called()
				s.ExpireWatches(deployments)
				s.Advance(2 * time.Minute)
				s.Called("child update")
			},
		},
		"what is not watched is not waited for": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("write", j.Note("write", writesElsewhere))
			}, func(s *stage) {
				s.begin()
				s.HoldWatches("configmaps.v1")
				s.size(2)
				s.size(3)
				s.Settle()
				if got := s.Take(); len(got) == 0 {
					s.t.Error("the object was parked")
				}
			},
		},
		"an object that leaves the selection by the operator's own write is not waited for": {
			func(foo *dsl.Resource, j *journal) {
				foo.LabelSelector = "tier=gold"
				foo.OnReconcile("write", j.Note("write", func(_ context.Context, r *dsl.Request) error {
					r.Patch.Label("tier", "iron")
					return nil
				}, succeeds))
			}, func(s *stage) {
				s.Launch()
				s.Create(web)
				s.set("gold", "metadata", "labels", "tier")
				s.Called("write create")
				s.set("gold", "metadata", "labels", "tier")
				s.Called("write create")
			},
		},
	})
}

// passes is what counts has counted.
func passes(s *stage) int64 {
	n, _, _ := unstructured.NestedInt64(s.web().Object, "status", "passes")
	return n
}

// TestOwnEchoes holds that the events of the operator's own writes run nothing.
func TestOwnEchoes(t *testing.T) {
	scenarios(t, map[string]scenario{
		"a child's creation and change by its owner's handler are no news": {
			func(foo *dsl.Resource, j *journal) {
				foo.Owns(deployments)
				foo.OnReconcile("child", j.Note("child", keepsChild))
			}, func(s *stage) {
				s.Launch()
				for i := range int64(20) {
					if i == 0 {
						s.Create(web)
						s.Called("child create")
						continue
					}
					s.size(i + 1)
					s.Called("child update")
				}
			},
		},
		"nor are they when their event comes before the answer": {parent, func(s *stage) {
			s.Launch()
			s.DelayNext("patch", deployments, time.Second)
			s.Create(web)
			s.Advance(2 * time.Second)
			s.Called("child create")
		}},
		"what somebody else does to a child before the answer comes is news": {parent, func(s *stage) {
			s.Launch()
			s.DelayNext("patch", deployments, time.Second)
			s.Create(web)
			s.Settle()
			s.rollout(1)
			s.Advance(2 * time.Second)
			s.Called("child create", "child child")
		}},
		"an own patch of status and annotations is no news": {
			func(foo *dsl.Resource, j *journal) { foo.On(both(), "report", j.Note("report", reports)) },
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("report create")
				s.size(2)
				s.Called("report update")
			},
		},
	})
}
