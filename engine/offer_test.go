// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

// TestOfferedConditions holds that they are set where the resource has conditions, and nowhere else.
func TestOfferedConditions(t *testing.T) {
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
			enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
				c.Serve(enginetest.Resource{Name: foos, Kind: "Foo"})
				if tt.conditions {
					c.Update(crds, "", "foos.example.com", addConditions)
				}
				s := newStage(t, c)
				s.Operator.Resource(foos, func(foo *dsl.Resource) {
					foo.OnReconcile("offer", s.Note("offer", func(_ ctx, r *dsl.Request) error {
						r.Patch.OfferCondition("Ready", metav1.ConditionTrue, "Offered", "offered")
						return nil
					}))
				})
				if tt.forbidden {
					c.Forbid("get", crds)
				}
				s.Launch()
				s.Create(web)
				s.Called("offer create")
				s.Wrote(tt.writes...)
				if got := message(s.web(), "Ready"); got != tt.ready {
					t.Errorf("condition Ready says %q, want %q", got, tt.ready)
				}
				s.Process.Restart()
				s.Called("offer resume")
				s.Wrote()
				if tt.forbidden {
					c.Allow("get", crds)
					s.Advance(2 * time.Minute)
					s.size(2)
					s.Wrote("patch foos/status default/web")
				}
			})
		})
	}
}

// TestOfferedConditionsYield holds that what a handler sets itself counts more, in any order.
func TestOfferedConditionsYield(t *testing.T) {
	enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
		c.Serve(enginetest.Resource{Name: foos, Kind: "Foo"})
		c.Update("customresourcedefinitions.v1.apiextensions.k8s.io", "", "foos.example.com", addConditions)
		s := newStage(t, c)
		offer := func(_ ctx, r *dsl.Request) error {
			r.Patch.OfferCondition("Ready", metav1.ConditionTrue, "Offered", "offered")
			r.Patch.OfferCondition("Other", metav1.ConditionTrue, "Offered", "offered")
			return nil
		}
		s.Operator.Resource(foos, func(foo *dsl.Resource) {
			foo.OnReconcile("first", offer)
			foo.OnReconcile("set", func(_ ctx, r *dsl.Request) error {
				r.Patch.SetCondition("Ready", metav1.ConditionFalse, "Set", "set")
				return nil
			})
			foo.OnReconcile("last", offer)
		})
		s.Launch()
		s.Create(web)
		s.Wrote("patch foos/status default/web")
		if ready, other := message(s.web(), "Ready"), message(s.web(), "Other"); ready != "set" || other != "offered" {
			t.Errorf("the conditions say %q and %q", ready, other)
		}
	})
}

// TestOffersOutliveATransientFault holds that what a handler offered is set later, when it could not be
// found out at once whether the resource has conditions: the handler is done.
func TestOffersOutliveATransientFault(t *testing.T) {
	const crds = "customresourcedefinitions.v1.apiextensions.k8s.io"
	enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
		c.Serve(enginetest.Resource{Name: foos, Kind: "Foo"})
		c.Update(crds, "", "foos.example.com", addConditions)
		s := newStage(t, c)
		s.Operator.Resource(foos, func(foo *dsl.Resource) {
			foo.OnReconcile("offer", func(_ ctx, r *dsl.Request) error {
				r.Patch.OfferCondition("Ready", metav1.ConditionTrue, "Offered", "offered")
				return nil
			})
		})
		s.Launch()
		s.FailNext("get", crds, apierrors.NewInternalError(errAgain))
		s.Create(web)
		s.Settle()
		s.Advance(10 * time.Second)
		if got := message(s.web(), "Ready"); got != "offered" {
			t.Errorf("condition Ready says %q", got)
		}
	})
}

// addConditions gives the schema of a CRD status.conditions.
func addConditions(crd *unstructured.Unstructured) {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	_ = unstructured.SetNestedField(versions[0].(map[string]any), map[string]any{"conditions": map[string]any{"type": "array"}},
		"schema", "openAPIV3Schema", "properties", "status", "properties")
	_ = unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")
}

// message is what a condition says, empty when there is none.
func message(o *unstructured.Unstructured, kind string) string {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if fields, _ := c.(map[string]any); fields["type"] == kind {
			text, _ := fields["message"].(string)
			return text
		}
	}
	return ""
}
