// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// makesDeployment makes the Deployment web with as many replicas as web's size.
func makesDeployment(spec dsl.ChildSpec) dsl.Func {
	return func(ctx context.Context, r *dsl.Request) error {
		size, _, _ := unstructured.NestedInt64(r.Object.Object, "spec", "size")
		_, err := r.Children.Apply(ctx, map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "namespace": "default"}, "spec": map[string]any{"replicas": size},
		}, spec)
		return err
	}
}

// TestAnApplyWaitsForAChildThatIsBeingDeleted holds that applying a child that is being deleted is not taken for success:
// the handler waits until the child is gone, and makes it again.
func TestAnApplyWaitsForAChildThatIsBeingDeleted(t *testing.T) {
	const hold = "example.com/hold"
	holds := func(s *scene.Stage, finalizers ...string) {
		s.T.Helper()
		s.Update(scene.Deployments, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(finalizers) })
	}
	// again lets go of a child that is being deleted, and holds that another one takes its place.
	again := func(s *scene.Stage, wrote ...string) {
		s.T.Helper()
		s.Advance(10 * time.Minute)
		if o := child(s); o == nil || o.GetDeletionTimestamp() == nil {
			s.T.Fatal("the child is not being deleted")
		}
		uid := child(s).GetUID()
		s.Settle()
		s.Forget()
		holds(s)
		s.Settle()
		if o := child(s); o == nil || o.GetUID() == uid || o.GetDeletionTimestamp() != nil {
			s.T.Error("the child was not made again")
		}
		s.Wrote(wrote...)
	}
	edges := func(spec dsl.ChildSpec) func(*dsl.Resource, *kit.Journal) {
		return func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.Deployments)
			foo.On([]dsl.Cause{dsl.Create, dsl.Update}, "child", makesDeployment(spec))
		}
	}
	const patched, progress = "patch deployments default/web", "patch foos default/web"
	scene.PlayAll(t, map[string]scene.Scenario{
		"an edge-triggered handler makes it again": {Operator: edges(dsl.ChildSpec{}), Play: func(s *scene.Stage) {
			s.Begin()
			holds(s, hold)
			s.Delete(scene.Deployments, "default", "web")
			s.Resize(2)
			again(s, patched, progress)
		}},
		"so it does a labelled one": {Operator: edges(dsl.ChildSpec{Ownership: dsl.Labelled}), Play: func(s *scene.Stage) {
			s.Begin()
			holds(s, hold)
			s.Delete(scene.Deployments, "default", "web")
			s.Resize(2)
			again(s, patched, progress)
		}},
		"one that the cache shows as living": {Operator: edges(dsl.ChildSpec{}), Play: func(s *scene.Stage) {
			s.Begin()
			holds(s, hold)
			s.Settle()
			s.HoldWatches(scene.Deployments)
			s.Delete(scene.Deployments, "default", "web")
			s.Resize(2)
			s.Settle()
			s.ReleaseWatches(scene.Deployments)
			again(s, patched, progress)
		}},
		"one that is made again because a field cannot be changed": {Operator: edges(dsl.ChildSpec{OnImmutable: dsl.RecreateChild}), Play: func(s *scene.Stage) {
			s.Begin()
			holds(s, hold)
			makeReplicasImmutable(s, 1)
			s.Resize(2)
			again(s, patched, progress)
			wantReplicas(s, 2)
		}},
		"a handler that deletes it and makes it again": {Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.Deployments)
			deleted := false
			foo.OnUpdate("child", func(ctx context.Context, r *dsl.Request) error {
				if !deleted {
					deleted = true
					if err := r.Children.Delete(ctx, scene.Deployments, "web"); err != nil {
						return err
					}
				}
				return makesDeployment(dsl.ChildSpec{})(ctx, r)
			})
			foo.OnCreate("first", makesDeployment(dsl.ChildSpec{}))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			uid := child(s).GetUID()
			s.Resize(2)
			s.Settle()
			if o := child(s); o == nil || o.GetUID() == uid {
				s.T.Error("the child was not made again")
			}
			s.Wrote("delete deployments default/web", patched, progress)
		}},
		"what a state of a machine makes when it is entered": {Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.Deployments)
			foo.Machine(dsl.Machine{States: []dsl.State{
				{Name: "Small", Transitions: []dsl.Transition{{To: "Large", When: func(s *dsl.Subject) (bool, error) {
					size, _, _ := unstructured.NestedInt64(s.Object.Object, "spec", "size")
					return size > 1, nil
				}}}},
				{Name: "Large", Enter: makesDeployment(dsl.ChildSpec{}), Terminal: true},
			}})
			foo.OnCreate("first", makesDeployment(dsl.ChildSpec{}))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			holds(s, hold)
			s.Delete(scene.Deployments, "default", "web")
			s.Resize(2)
			s.Advance(time.Minute)
			if entered, found, _ := unstructured.NestedString(s.Web().Object, "status", "stateEntered"); found {
				s.T.Errorf("the state was entered at %s without its child", entered)
			}
			again(s, patched, "patch foos/status default/web")
		}},
		"a handler that waits costs no request": {Operator: edges(dsl.ChildSpec{}), Play: func(s *scene.Stage) {
			s.Begin()
			holds(s, hold)
			s.Delete(scene.Deployments, "default", "web")
			s.Resize(2)
			s.Advance(10 * time.Minute)
			s.Forget()
			s.Advance(time.Hour)
			s.Wrote()
		}},
		"the owner's deletion does not wait for it": {Operator: edges(dsl.ChildSpec{}), Play: func(s *scene.Stage) {
			s.Begin()
			holds(s, hold)
			s.Delete(scene.Deployments, "default", "web")
			s.Resize(2)
			s.Advance(time.Minute)
			s.Remove()
			s.Settle()
			if s.Web() != nil {
				s.T.Error("the owner is there still")
			}
			s.Forget()
			holds(s)
			s.Advance(time.Hour)
			s.Wrote()
		}},
	})
}
