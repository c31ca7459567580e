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
	// looks has a handler that is told of children, and one after it that makes one; third is another one.
	looks := func(third func(foo *dsl.Resource)) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.Owns(deployments)
			foo.OnChild("looks", j.Note("looks"))
			foo.OnUpdate("keeps", j.Note("keeps", keepsChild))
			third(foo)
		}
	}
	told := func(s *stage) {
		s.t.Helper()
		if len(s.Of("looks", "web")) == 0 {
			s.t.Error("a child was made, and a handler of cause child was not told")
		}
	}
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
		"children that another handler made, when the pass broke off": {
			looks(func(foo *dsl.Resource) { foo.OnUpdate("third", offers) }), func(s *stage) {
				s.begin()
				end := s.FailWhile("get", "customresourcedefinitions.v1.apiextensions.k8s.io", refused)
				s.size(2)
				s.Advance(10 * time.Second)
				if failed := end(); failed == 0 {
					s.t.Fatal("no request failed")
				}
				s.Advance(10 * time.Minute)
				told(s)
			},
		},
		"children that another handler made, when the pass could not be written": {
			looks(func(foo *dsl.Resource) { foo.OnUpdate("report", reports) }), func(s *stage) {
				s.begin()
				s.FailNext("patch", foos+"/status", refused)
				s.size(2)
				s.Advance(10 * time.Minute)
				told(s)
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
