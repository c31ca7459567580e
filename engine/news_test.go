// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestNewsOutliveFailedPasses is law 1 for what happens beside an object, when the pass that took the
// news could not be finished.
func TestNewsOutliveFailedPasses(t *testing.T) {
	refused := apierrors.NewInternalError(errors.New("broken"))
	scenarios(t, map[string]scenario{
		"a child's, when the object could not be read": {
			func(foo *dsl.Resource, j *journal) {
				foo.Cache = dsl.CacheLive
				foo.Owns(deployments)
				foo.OnCreate("child", keepsChild)
				foo.OnChild("seen", j.Note("seen"))
			}, func(s *stage) {
				s.begin()
				s.FailNext("get", foos, refused)
				s.rollout(1)
				s.Called()
				s.Advance(time.Minute)
				s.Called("seen child")
			},
		},
		"a child's, when an object of the name could not be seen off": {
			func(foo *dsl.Resource, j *journal) {
				foo.Owns(deployments)
				foo.LabelSelector = "tier=gold"
				foo.OnReconcile("child", j.Note("child", keepsChild))
				foo.OnDelete("left", succeeds)
			}, func(s *stage) {
				s.Launch()
				s.Create(web)
				s.set("gold", "metadata", "labels", "tier")
				s.Called("child create")
				s.FailNext("get", foos, refused)
				s.set("iron", "metadata", "labels", "tier")
				s.Settle()
				s.Advance(time.Minute)
				s.finalizers()
			},
		},
		"other related objects, when what asks for them could not be written": {
			func(foo *dsl.Resource, j *journal) {
				relates(dsl.Relation{Select: byName}, dsl.RelatedChange)(foo, j)
				foo.OnUpdate("label", func(_ ctx, r *dsl.Request) error {
					r.Patch.Label("seen", "yes")
					return nil
				})
			}, func(s *stage) {
				s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {v: "1"}}`)
				s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {v: "2"}}`)
				s.Launch()
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {ref: a}}`)
				s.Called()
				s.FailNext("patch", foos, refused)
				s.set("b", "spec", "ref")
				s.Settle()
				s.Advance(time.Minute)
				// A pass whose write failed did not happen, so what ran in it runs again.
				s.Called("web related: default/b=2", "web related: default/b=2")
			},
		},
	})
}
