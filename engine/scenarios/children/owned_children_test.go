// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

func errNotFound() error {
	return apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web")
}

// child returns web's Deployment, nil when there is none.
func child(s *scene.Stage) *unstructured.Unstructured {
	s.T.Helper()
	s.Settle()
	return s.Get(scene.Deployments, "default", "web")
}

// wantReplicas checks the child's spec.replicas.
func wantReplicas(s *scene.Stage, want int64) {
	s.T.Helper()
	o := child(s)
	if o == nil {
		s.T.Fatal("there is no child")
	}
	if got, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas"); got != want {
		s.T.Errorf("spec.replicas is %d, want %d", got, want)
	}
}

func TestAChildIsKeptAsItsHandlerMakesIt(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a child is owned and controlled by its object": {Operator: scene.OwnsDeployment, Play: func(s *scene.Stage) {
			s.Begin()
			owner, o := s.Web(), child(s)
			if !metav1.IsControlledBy(o, owner) || o.GetNamespace() != "default" {
				s.T.Errorf("the child is %v", o.Object)
			}
		}},
		"what somebody changes of what is desired is put right": {Operator: scene.OwnsDeployment, Play: func(s *scene.Stage) {
			s.Begin()
			s.Update(scene.Deployments, "default", "web", func(o *unstructured.Unstructured) {
				o.Object["spec"] = map[string]any{"replicas": int64(7)}
			})
			s.Called("child child")
			wantReplicas(s, 1)
			s.Wrote("patch deployments default/web")
		}},
		"what somebody sets besides is left alone": {Operator: scene.OwnsDeployment, Play: func(s *scene.Stage) {
			s.Begin()
			s.Update(scene.Deployments, "default", "web", func(o *unstructured.Unstructured) {
				o.Object["spec"] = map[string]any{"replicas": int64(1), "paused": true}
				o.SetLabels(map[string]string{"theirs": "yes"})
			})
			s.Called("child child")
			s.Wrote()
			s.Resize(2)
			wantReplicas(s, 2)
			o := child(s)
			if paused, _, _ := unstructured.NestedBool(o.Object, "spec", "paused"); !paused || o.GetLabels()["theirs"] == "" {
				s.T.Errorf("what others had set is gone: %v", o.Object)
			}
		}},
		"what only reads sees what the handler has applied so far": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnReconcile("child", j.Note("child", func(ctx context.Context, r *dsl.Request) error {
					before, err := r.Subject.Children.List(scene.Deployments)
					err = errors.Join(err, scene.KeepsDeployment(ctx, r))
					after, err2 := r.Subject.Children.Get(scene.Deployments, "web")
					if len(before) > 0 || after == nil {
						j.Add(fmt.Sprintf("%d children before, %v after", len(before), after))
					}
					return errors.Join(err, err2)
				}))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("child create")
			},
		},
		"what is desired no more is taken away": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnReconcile("child", func(ctx context.Context, r *dsl.Request) error {
					d := scene.DeploymentNamed("web", int64(1))
					if size, _ := dsl.MustParsePath("spec.size").In(r.Object.Object); size == int64(1) {
						d["spec"].(map[string]any)["paused"] = true
					}
					_, err := r.Children.Apply(ctx, d)
					return err
				})
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Resize(2)
				if _, found, _ := unstructured.NestedBool(child(s).Object, "spec", "paused"); found {
					s.T.Error("spec.paused is still there")
				}
			},
		},
	})
}

// TestADeletedChildIsMadeAgain holds that a child that is gone is made again, once.
func TestADeletedChildIsMadeAgain(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a child that is deleted is made again": {Operator: scene.OwnsDeployment, Play: func(s *scene.Stage) {
			s.Begin()
			s.Delete(scene.Deployments, "default", "web")
			s.Called("child child")
			wantReplicas(s, 1)
		}},
		"one that is being deleted is left alone until it is gone": {Operator: scene.OwnsDeployment, Play: func(s *scene.Stage) {
			s.Begin()
			s.Update(scene.Deployments, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/x"}) })
			s.Delete(scene.Deployments, "default", "web")
			s.Forget()
			s.Resize(2)
			s.Advance(time.Minute)
			s.Wrote()
			s.Update(scene.Deployments, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			s.Advance(time.Minute)
			wantReplicas(s, 2)
		}},
		"a deletion that no watch shows is noticed": {Operator: scene.OwnsDeployment, Play: func(s *scene.Stage) {
			s.Begin()
			s.HoldWatches(scene.Deployments)
			s.Delete(scene.Deployments, "default", "web")
			s.ExpireWatches(scene.Deployments)
			s.ReleaseWatches(scene.Deployments)
			s.Advance(time.Minute)
			s.Called("child child")
			wantReplicas(s, 1)
		}},
		"an answer that is lost makes no second child": {Operator: scene.OwnsDeployment, Play: func(s *scene.Stage) {
			s.Launch()
			s.LoseNext("patch", scene.Deployments)
			s.Create(scene.Web)
			s.Advance(time.Minute)
			wantReplicas(s, 1)
			s.Wrote("patch deployments default/web")
		}},
	})
}

// TestAChildThatCannotBeOwnedIsRefusedForGood holds that a handler does not try again what cannot work.
func TestAChildThatCannotBeOwnedIsRefusedForGood(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a child in another namespace is refused for good": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnReconcile("child", j.Note("child", func(ctx context.Context, r *dsl.Request) error {
					d := scene.DeploymentNamed("web", int64(1))
					d["metadata"].(map[string]any)["namespace"] = "kube-system"
					_, err := r.Children.Apply(ctx, d)
					return err
				}))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Advance(time.Hour)
				s.Called()
				s.Wrote()
			},
		},
		"one of a kind that is not owned is refused for good": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("child", j.Note("child", scene.KeepsDeployment))
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.Advance(time.Hour)
				s.Called()
				if len(s.Events()) != 1 {
					s.T.Errorf("events %+v", s.Events())
				}
			},
		},
	})
}

// TestHandlersSeeTheirChildren holds what handlers see of their children.
func TestHandlersSeeTheirChildren(t *testing.T) {
	look := func(r *dsl.Request) string {
		one, err1 := r.Children.Get(scene.Deployments, "web")
		none, err2 := r.Children.Get(scene.Deployments, "missing")
		list, err3 := r.Children.List(scene.Deployments)
		_, err4 := r.Children.List("pods.v1")
		return fmt.Sprint(one != nil, err1, none == nil, err2, len(list), err3, dsl.IsPermanent(err4))
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"a child is seen as it was just applied": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnCreate("child", scene.KeepsDeployment)
				foo.OnCreate("look", func(_ context.Context, r *dsl.Request) error {
					j.Add(look(r))
					return nil
				})
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.HoldWatches(scene.Deployments)
				s.Create(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: theirs}, spec: {replicas: 7}}`)
				s.Create(scene.Web)
				s.Called("true <nil> true <nil> 1 <nil> true")
			},
		},
		"a child is deleted once, and one that is not owned never": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnCreate("child", scene.KeepsDeployment)
				foo.OnUpdate("change", j.Note("change", func(ctx context.Context, r *dsl.Request) error {
					return errors.Join(r.Children.Delete(ctx, scene.Deployments, "web"), r.Children.Delete(ctx, scene.Deployments, "theirs"),
						r.Children.Delete(ctx, scene.Deployments, "missing"))
				}))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Create(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: theirs}, spec: {replicas: 7}}`)
				s.Resize(2)
				s.Wrote("delete deployments default/web", "patch foos default/web")
				s.Resize(3)
				s.Wrote("patch foos default/web")
				if child(s) != nil || s.Get(scene.Deployments, "default", "theirs") == nil {
					s.T.Error("the wrong one was deleted")
				}
			},
		},
	})
}
