// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestOfferedConditionsAreSetWhereTheResourceHasConditions holds that they are set where the resource has conditions, and
// nowhere else.
func TestOfferedConditionsAreSetWhereTheResourceHasConditions(t *testing.T) {
	const crds = "customresourcedefinitions.v1.apiextensions.k8s.io"
	tests := map[string]struct {
		conditions, forbidden bool
		ready                 string
		writes                []string
	}{
		"the schema has conditions":  {conditions: true, ready: "offered", writes: []string{"patch foos/status default/web"}},
		"it has none":                {},
		"the schema may not be read": {conditions: true, forbidden: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
				if tt.conditions {
					c.Update(crds, "", "foos.example.com", scene.AddConditions)
				}
				s := scene.NewStage(t, c)
				s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
					foo.OnReconcile("offer", s.Note("offer", func(_ context.Context, r *dsl.Request) error {
						r.Patch.OfferCondition("Ready", metav1.ConditionTrue, "Offered", "offered")
						return nil
					}))
				})
				if tt.forbidden {
					c.Forbid("get", crds)
				}
				s.Launch()
				s.Create(scene.Web)
				s.Called("offer create")
				s.Wrote(tt.writes...)
				if got := scene.ConditionMessage(s.Web(), "Ready"); got != tt.ready {
					t.Errorf("condition Ready says %q, want %q", got, tt.ready)
				}
				s.Process.Restart()
				s.Called("offer resume")
				s.Wrote()
				if tt.forbidden {
					c.Allow("get", crds)
					s.Advance(2 * time.Minute)
					s.Resize(2)
					s.Wrote("patch foos/status default/web")
				}
			})
		})
	}
}

// TestOfferedConditionsYield holds that what a handler sets itself counts more, in any order.
func TestOfferedConditionsYield(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
		c.Update("customresourcedefinitions.v1.apiextensions.k8s.io", "", "foos.example.com", scene.AddConditions)
		s := scene.NewStage(t, c)
		offer := func(_ context.Context, r *dsl.Request) error {
			r.Patch.OfferCondition("Ready", metav1.ConditionTrue, "Offered", "offered")
			r.Patch.OfferCondition("Other", metav1.ConditionTrue, "Offered", "offered")
			return nil
		}
		s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
			foo.OnReconcile("first", offer)
			foo.OnReconcile("set", func(_ context.Context, r *dsl.Request) error {
				r.Patch.SetCondition("Ready", metav1.ConditionFalse, "Set", "set")
				return nil
			})
			foo.OnReconcile("last", offer)
		})
		s.Launch()
		s.Create(scene.Web)
		s.Wrote("patch foos/status default/web")
		if ready, other := scene.ConditionMessage(s.Web(), "Ready"), scene.ConditionMessage(s.Web(), "Other"); ready != "set" || other != "offered" {
			t.Errorf("the conditions say %q and %q", ready, other)
		}
	})
}

// TestOffersOutliveATransientFault holds that what a handler offered is set later, when it could not be
// found out at once whether the resource has conditions: the handler is done.
func TestOffersOutliveATransientFault(t *testing.T) {
	const crds = "customresourcedefinitions.v1.apiextensions.k8s.io"
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
		c.Update(crds, "", "foos.example.com", scene.AddConditions)
		s := scene.NewStage(t, c)
		s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
			foo.OnReconcile("offer", func(_ context.Context, r *dsl.Request) error {
				r.Patch.OfferCondition("Ready", metav1.ConditionTrue, "Offered", "offered")
				return nil
			})
		})
		s.Launch()
		s.FailNext("get", crds, apierrors.NewInternalError(scene.ErrAgain))
		s.Create(scene.Web)
		s.Settle()
		s.Advance(10 * time.Second)
		if got := scene.ConditionMessage(s.Web(), "Ready"); got != "offered" {
			t.Errorf("condition Ready says %q", got)
		}
	})
}
