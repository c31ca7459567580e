// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

func notFound() error {
	return apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web")
}

// child returns web's Deployment, nil when there is none.
func child(s *scene.Stage) *unstructured.Unstructured {
	s.T.Helper()
	s.Settle()
	return s.Get(scene.Deployments, "default", "web")
}

// replicas checks the child's spec.replicas.
func replicas(s *scene.Stage, want int64) {
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
			replicas(s, 1)
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
			replicas(s, 2)
			o := child(s)
			if paused, _, _ := unstructured.NestedBool(o.Object, "spec", "paused"); !paused || o.GetLabels()["theirs"] == "" {
				s.T.Errorf("what others had set is gone: %v", o.Object)
			}
		}},
		"what only reads sees what the handler has applied so far": {
			Operator: func(foo *dsl.Resource, j *enginetest.Journal) {
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
			Operator: func(foo *dsl.Resource, j *enginetest.Journal) {
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
		"a child that is deleted is made again": {Operator: scene.OwnsDeployment, Play: func(s *scene.Stage) {
			s.Begin()
			s.Delete(scene.Deployments, "default", "web")
			s.Called("child child")
			replicas(s, 1)
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
			replicas(s, 2)
		}},
		"a deletion that no watch shows is noticed": {Operator: scene.OwnsDeployment, Play: func(s *scene.Stage) {
			s.Begin()
			s.HoldWatches(scene.Deployments)
			s.Delete(scene.Deployments, "default", "web")
			s.ExpireWatches(scene.Deployments)
			s.ReleaseWatches(scene.Deployments)
			s.Advance(time.Minute)
			s.Called("child child")
			replicas(s, 1)
		}},
		"an answer that is lost makes no second child": {Operator: scene.OwnsDeployment, Play: func(s *scene.Stage) {
			s.Launch()
			s.LoseNext("patch", scene.Deployments)
			s.Create(scene.Web)
			s.Advance(time.Minute)
			replicas(s, 1)
			s.Wrote("patch deployments default/web")
		}},
		"a child in another namespace is refused for good": {
			Operator: func(foo *dsl.Resource, j *enginetest.Journal) {
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
			Operator: func(foo *dsl.Resource, j *enginetest.Journal) {
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
	tries := func(foo *dsl.Resource, j *enginetest.Journal) {
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
			replicas(s, 1)
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
			replicas(s, 1)
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
	tries := func(foo *dsl.Resource, j *enginetest.Journal) {
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
		replicas(s, 7)
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
			replicas(s, 1)
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
			s.FailNext("get", scene.Deployments, notFound())
			s.HoldWatches(scene.Deployments)
			s.Create(theirs)
			s.Create(scene.Web)
			refused(s)
		}},
	})
}

// TestHandlersSeeTheirChildren holds what handlers see of their children.
func TestHandlersSeeTheirChildren(t *testing.T) {
	look := func(r *dsl.Request) string {
		one, err1 := r.Children.Get(scene.Deployments, "web")
		none, err2 := r.Children.Get(scene.Deployments, "nobody")
		list, err3 := r.Children.List(scene.Deployments)
		_, err4 := r.Children.List("pods.v1")
		return fmt.Sprint(one != nil, err1, none == nil, err2, len(list), err3, dsl.IsPermanent(err4))
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"a child is seen as it was just applied": {
			Operator: func(foo *dsl.Resource, j *enginetest.Journal) {
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
			Operator: func(foo *dsl.Resource, j *enginetest.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnCreate("child", scene.KeepsDeployment)
				foo.OnUpdate("change", j.Note("change", func(ctx context.Context, r *dsl.Request) error {
					return errors.Join(r.Children.Delete(ctx, scene.Deployments, "web"), r.Children.Delete(ctx, scene.Deployments, "theirs"),
						r.Children.Delete(ctx, scene.Deployments, "nobody"))
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

// TestAClusterScopedOwnerHasChildrenInNamespaces holds that an object without a namespace can own some with one, which
// costs it a write of its record before the first.
func TestAClusterScopedOwnerHasChildrenInNamespaces(t *testing.T) {
	const teams = "teams.v1.example.com"
	enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
		c.Serve(enginetest.Resource{Name: teams, Kind: "Team", ClusterScoped: true})
		s := scene.NewStage(t, c)
		s.Operator.Resource(teams, func(team *dsl.Resource) {
			team.Owns("configmaps.v1", "namespaces.v1")
			team.OnReconcile("keep", s.Note("keep", func(ctx context.Context, r *dsl.Request) error {
				_, err1 := r.Children.Apply(ctx, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "team"}})
				_, err2 := r.Children.Apply(ctx, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "team"}})
				found, err3 := r.Children.Get("configmaps.v1", "team/a")
				if found == nil {
					s.Add("the child is not found")
				}
				return errors.Join(err1, err2, err3)
			}))
		})
		s.Launch()
		s.Create(`{apiVersion: example.com/v1, kind: Team, metadata: {name: one}}`)
		s.Called("keep create")
		s.Wrote("patch namespaces team", "patch teams one", "patch configmaps team/a")
		s.Delete("configmaps.v1", "team", "a")
		s.Called("keep child")
		s.Wrote("patch configmaps team/a")
	})
}
