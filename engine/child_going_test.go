// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// makesDeployment makes the Deployment web with as many replicas as web's size.
func makesDeployment(spec dsl.ChildSpec) dsl.Func {
	return func(ctx ctx, r *dsl.Request) error {
		size, _, _ := unstructured.NestedInt64(r.Object.Object, "spec", "size")
		_, err := r.Children.Apply(ctx, map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "namespace": "default"}, "spec": map[string]any{"replicas": size},
		}, spec)
		return err
	}
}

// TestAChildThatIsBeingDeleted holds that applying a child that is being deleted is not taken for success: the handler waits
// until the child is gone, and makes it again.
func TestAChildThatIsBeingDeleted(t *testing.T) {
	const hold = "example.com/hold"
	holds := func(s *stage, finalizers ...string) {
		s.t.Helper()
		s.Update(deployments, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(finalizers) })
	}
	// again lets go of a child that is being deleted, and holds that another one takes its place.
	again := func(s *stage, wrote ...string) {
		s.t.Helper()
		s.Advance(10 * time.Minute)
		if o := s.child(); o == nil || o.GetDeletionTimestamp() == nil {
			s.t.Fatal("the child is not being deleted")
		}
		uid := s.child().GetUID()
		s.Settle()
		s.Forget()
		holds(s)
		s.Settle()
		if o := s.child(); o == nil || o.GetUID() == uid || o.GetDeletionTimestamp() != nil {
			s.t.Error("the child was not made again")
		}
		s.Wrote(wrote...)
	}
	edges := func(spec dsl.ChildSpec) func(*dsl.Resource, *journal) {
		return func(foo *dsl.Resource, _ *journal) {
			foo.Owns(deployments)
			foo.On([]dsl.Cause{dsl.Create, dsl.Update}, "child", makesDeployment(spec))
		}
	}
	const patched, progress = "patch deployments default/web", "patch foos default/web"
	scenarios(t, map[string]scenario{
		"an edge-triggered handler makes it again": {edges(dsl.ChildSpec{}), func(s *stage) {
			s.begin()
			holds(s, hold)
			s.Delete(deployments, "default", "web")
			s.size(2)
			again(s, patched, progress)
		}},
		"so it does a labelled one": {edges(dsl.ChildSpec{Ownership: dsl.Labelled}), func(s *stage) {
			s.begin()
			holds(s, hold)
			s.Delete(deployments, "default", "web")
			s.size(2)
			again(s, patched, progress)
		}},
		"one that the cache shows as living": {edges(dsl.ChildSpec{}), func(s *stage) {
			s.begin()
			holds(s, hold)
			s.Settle()
			s.HoldWatches(deployments)
			s.Delete(deployments, "default", "web")
			s.size(2)
			s.Settle()
			s.ReleaseWatches(deployments)
			again(s, patched, progress)
		}},
		"one that is made again because a field cannot be changed": {edges(dsl.ChildSpec{OnImmutable: dsl.RecreateChild}), func(s *stage) {
			s.begin()
			holds(s, hold)
			s.fixes(1)
			s.size(2)
			again(s, patched, progress)
			s.replicas(2)
		}},
		"a handler that deletes it and makes it again": {func(foo *dsl.Resource, _ *journal) {
			foo.Owns(deployments)
			deleted := false
			foo.OnUpdate("child", func(ctx ctx, r *dsl.Request) error {
				if !deleted {
					deleted = true
					if err := r.Children.Delete(ctx, deployments, "web"); err != nil {
						return err
					}
				}
				return makesDeployment(dsl.ChildSpec{})(ctx, r)
			})
			foo.OnCreate("first", makesDeployment(dsl.ChildSpec{}))
		}, func(s *stage) {
			s.begin()
			uid := s.child().GetUID()
			s.size(2)
			s.Settle()
			if o := s.child(); o == nil || o.GetUID() == uid {
				s.t.Error("the child was not made again")
			}
			s.Wrote("delete deployments default/web", patched, progress)
		}},
		"what a state of a machine makes when it is entered": {func(foo *dsl.Resource, _ *journal) {
			foo.Owns(deployments)
			foo.Machine(dsl.Machine{States: []dsl.State{
				{Name: "Small", Transitions: []dsl.Transition{{To: "Large", When: func(s *dsl.Subject) (bool, error) {
					size, _, _ := unstructured.NestedInt64(s.Object.Object, "spec", "size")
					return size > 1, nil
				}}}},
				{Name: "Large", Enter: makesDeployment(dsl.ChildSpec{}), Terminal: true},
			}})
			foo.OnCreate("first", makesDeployment(dsl.ChildSpec{}))
		}, func(s *stage) {
			s.begin()
			holds(s, hold)
			s.Delete(deployments, "default", "web")
			s.size(2)
			s.Advance(time.Minute)
			if entered, found, _ := unstructured.NestedString(s.web().Object, "status", "stateEntered"); found {
				s.t.Errorf("the state was entered at %s without its child", entered)
			}
			again(s, patched, "patch foos/status default/web")
		}},
		"a handler that waits costs no request": {edges(dsl.ChildSpec{}), func(s *stage) {
			s.begin()
			holds(s, hold)
			s.Delete(deployments, "default", "web")
			s.size(2)
			s.Advance(10 * time.Minute)
			s.Forget()
			s.Advance(time.Hour)
			s.Wrote()
		}},
		"the owner's deletion does not wait for it": {edges(dsl.ChildSpec{}), func(s *stage) {
			s.begin()
			holds(s, hold)
			s.Delete(deployments, "default", "web")
			s.size(2)
			s.Advance(time.Minute)
			s.remove()
			s.Settle()
			if s.web() != nil {
				s.t.Error("the owner is there still")
			}
			s.Forget()
			holds(s)
			s.Advance(time.Hour)
			s.Wrote()
		}},
	})
}
