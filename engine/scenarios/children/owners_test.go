// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestChangesOfOwnersAreNews holds which owners run when ties of children change.
func TestChangesOfOwnersAreNews(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"when children change owners both get to know": {Operator: scene.OwnsDeployment, Play: func(s *scene.Stage) {
			s.Begin()
			second := s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: second}, spec: {size: 1}}`)
			s.Forget()
			s.Update(scene.Deployments, "default", "web", func(o *unstructured.Unstructured) {
				refs := o.GetOwnerReferences()
				refs[0].Name, refs[0].UID = "second", second.GetUID()
				o.SetOwnerReferences(refs)
			})
			s.Called("child child", "child child")
		}},
		"the children of an object that is deleted are no news to it": {Operator: scene.OwnsDeployment, Play: func(s *scene.Stage) {
			s.Begin()
			s.Remove()
			s.Settle()
			s.Delete(scene.Deployments, "default", "web")
			s.Called()
			s.Wrote()
		}},
	})
}

// TestANewOwnerWaitsForTheChildrenOfAnEarlierOne holds that an object that is made again under its name waits for what
// the garbage collector has yet to take, and goes on when that is gone.
func TestANewOwnerWaitsForTheChildrenOfAnEarlierOne(t *testing.T) {
	tries := func(foo *dsl.Resource, j *kit.Journal) {
		foo.Owns(scene.Deployments)
		foo.OnReconcile("child", j.Note("child", func(ctx context.Context, r *dsl.Request) error {
			err := scene.KeepsDeployment(ctx, r)
			if err != nil {
				j.Add(err.Error())
			}
			return err
		}), dsl.Retries(1))
	}
	waits := []string{"child create", "waiting for Deployment default/web of an earlier Foo default/web to be collected"}
	scene.PlayAll(t, map[string]scene.Scenario{
		"it is no failure, however long it takes, and ends at once": {Operator: tries, Play: func(s *scene.Stage) {
			s.Begin()
			s.Remove()
			s.WantGone()
			s.Create(scene.Web)
			s.Called(waits...)
			s.Advance(10*time.Minute + 30*time.Second)
			s.Called(slices.Repeat(waits, 10)...)
			s.Wrote()
			if len(s.Events()) > 0 {
				s.T.Errorf("events %v", s.Events())
			}
			s.Delete(scene.Deployments, "default", "web")
			s.Called("child create")
			wantReplicas(s, 1)
			s.Wrote("patch deployments default/web")
		}},
		"one that is being deleted is waited for as well": {Operator: tries, Play: func(s *scene.Stage) {
			s.Begin()
			s.Update(scene.Deployments, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/x"}) })
			s.Delete(scene.Deployments, "default", "web")
			s.Remove()
			s.Forget()
			s.Create(scene.Web)
			s.Called(waits...)
			s.Update(scene.Deployments, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			s.Advance(time.Minute)
			wantReplicas(s, 1)
		}},
		"one of another object of the name is somebody's": {Operator: tries, Play: func(s *scene.Stage) {
			s.Launch()
			yes := true
			for _, kind := range []string{"Foo", "Bar"} {
				d := &unstructured.Unstructured{Object: scene.DeploymentNamed("web", int64(7))}
				d.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.org/v1", Kind: kind, Name: "web", UID: "u-9", Controller: &yes}})
				s.Create(d.Object)
				s.Create(scene.Web)
				s.Called("child create", "applying Deployment default/web: it exists and is not owned by this object (its owner is "+kind+" web); rename the child, or delete the object")
				s.Remove()
				s.Delete(scene.Deployments, "default", "web")
				s.Forget()
			}
		}},
	})
}

// TestAnObjectOfOthersIsNotAdoptedSilently holds that objects of others are never adopted silently.
func TestAnObjectOfOthersIsNotAdoptedSilently(t *testing.T) {
	const theirs = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 7}}`
	var failure error
	tries := func(foo *dsl.Resource, j *kit.Journal) {
		foo.Owns(scene.Deployments)
		foo.OnReconcile("child", j.Note("child", func(ctx context.Context, r *dsl.Request) error {
			failure = scene.KeepsDeployment(ctx, r)
			return failure
		}))
	}
	refused := func(s *scene.Stage) {
		s.T.Helper()
		s.Settle()
		if !errors.Is(failure, dsl.ErrNotOwned) {
			s.T.Errorf("the error is %v", failure)
		}
		wantReplicas(s, 7)
		if refs := child(s).GetOwnerReferences(); len(refs) > 0 {
			s.T.Errorf("the owners are %v", refs)
		}
		for _, m := range child(s).GetManagedFields() {
			if m.Manager == "op" {
				s.T.Error("the operator owns fields of it")
			}
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"one that the cache has": {Operator: tries, Play: func(s *scene.Stage) {
			s.Create(theirs)
			s.Launch()
			s.Create(scene.Web)
			refused(s)
			s.Wrote()
			s.Delete(scene.Deployments, "default", "web")
			s.Advance(time.Minute)
			wantReplicas(s, 1)
		}},
		"one that the cache does not have yet": {Operator: tries, Play: func(s *scene.Stage) {
			s.Launch()
			s.HoldWatches(scene.Deployments)
			s.Create(theirs)
			s.Create(scene.Web)
			refused(s)
			s.Wrote("patch deployments default/web: 409")
		}},
		"one that is made in the very moment": {Operator: tries, Play: func(s *scene.Stage) {
			s.Launch()
			s.FailNext("get", scene.Deployments, errNotFound())
			s.HoldWatches(scene.Deployments)
			s.Create(theirs)
			s.Create(scene.Web)
			refused(s)
		}},
	})
}
