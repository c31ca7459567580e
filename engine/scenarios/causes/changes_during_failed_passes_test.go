// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package causes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestNoEventIsLostWhenAPassFails is law 1 for what happens beside an object, when the reconcile that took the
// news could not be finished.
func TestNoEventIsLostWhenAPassFails(t *testing.T) {
	refused := apierrors.NewInternalError(errors.New("broken"))
	// looks has a handler with cause child, and one after it that makes one; third is another one.
	looks := func(third func(foo *dsl.Resource)) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.Deployments)
			foo.OnChild("looks", j.Note("looks"))
			foo.OnUpdate("keeps", j.Note("keeps", scene.KeepsDeployment))
			third(foo)
		}
	}
	notified := func(s *scene.Stage) {
		s.T.Helper()
		if len(s.Of("looks", "web")) == 0 {
			s.T.Error("a child was made, and a handler of cause child did not run")
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"a child's, when the object could not be read": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Cache = dsl.CacheLive
				foo.Owns(scene.Deployments)
				foo.OnCreate("child", scene.KeepsDeployment)
				foo.OnChild("seen", j.Note("seen"))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.FailNext("get", scene.Foos, refused)
				s.RollOut(1)
				s.Called()
				s.Advance(time.Minute)
				s.Called("seen child")
			},
		},
		"a child's, when an object of the name could not be released": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.LabelSelector = "tier=gold"
				foo.OnReconcile("child", j.Note("child", scene.KeepsDeployment))
				foo.OnDelete("left", scene.Succeeds)
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Set("gold", "metadata", "labels", "tier")
				s.Called("child create")
				s.FailNext("get", scene.Foos, refused)
				s.Set("iron", "metadata", "labels", "tier")
				s.Settle()
				s.Advance(time.Minute)
				s.WantFinalizers()
			},
		},
		"children that another handler made, when the pass broke off": {
			Operator: looks(func(foo *dsl.Resource) { foo.OnUpdate("third", offersCondition) }), Play: func(s *scene.Stage) {
				end := s.FailWhile("get", "customresourcedefinitions.v1.apiextensions.k8s.io", refused)
				s.Begin()
				s.Resize(2)
				s.Advance(10 * time.Second)
				if failed := end(); failed < 2 { // one at the start
					s.T.Fatalf("%d requests failed", failed)
				}
				s.Advance(10 * time.Minute)
				notified(s)
			},
		},
		"children that another handler made, when the pass could not be written": {
			Operator: looks(func(foo *dsl.Resource) { foo.OnUpdate("report", scene.Reports) }), Play: func(s *scene.Stage) {
				s.Begin()
				s.FailNext("patch", scene.Foos+"/status", refused)
				s.Resize(2)
				s.Advance(10 * time.Minute)
				notified(s)
			},
		},
		"other related objects, when what asks for them could not be written": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				scene.NotesRelated(dsl.Relation{Select: scene.RelatedByName}, dsl.RelatedChange)(foo, j)
				foo.OnUpdate("label", func(_ context.Context, r *dsl.Request) error {
					r.Patch.Label("seen", "yes")
					return nil
				})
			}, Play: func(s *scene.Stage) {
				s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {v: "1"}}`)
				s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {v: "2"}}`)
				s.Launch()
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {ref: a}}`)
				s.Called()
				s.FailNext("patch", scene.Foos, refused)
				s.Set("b", "spec", "ref")
				s.Settle()
				s.Advance(time.Minute)
				// A reconcile whose write failed did not happen, so what ran in it runs again.
				s.Called("web related: default/b=2", "web related: default/b=2")
			},
		},
	})
}
