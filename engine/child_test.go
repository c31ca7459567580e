// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

// child returns web's Deployment, nil when there is none.
func (s *stage) child() *unstructured.Unstructured {
	s.t.Helper()
	s.Settle()
	return s.Get(deployments, "default", "web")
}

// replicas checks the child's spec.replicas.
func (s *stage) replicas(want int64) {
	s.t.Helper()
	o := s.child()
	if o == nil {
		s.t.Fatal("there is no child")
	}
	if got, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas"); got != want {
		s.t.Errorf("spec.replicas is %d, want %d", got, want)
	}
}

// parent keeps a Deployment by a level-triggered handler.
func parent(foo *dsl.Resource, j *journal) {
	foo.Owns(deployments)
	foo.OnReconcile("child", j.Note("child", keepsChild))
}

func TestChildren(t *testing.T) {
	scenarios(t, map[string]scenario{
		"a child is owned and controlled by its object": {parent, func(s *stage) {
			s.begin()
			owner, o := s.web(), s.child()
			if !metav1.IsControlledBy(o, owner) || o.GetNamespace() != "default" {
				s.t.Errorf("the child is %v", o.Object)
			}
		}},
		"what somebody changes of what is desired is put right": {parent, func(s *stage) {
			s.begin()
			s.Update(deployments, "default", "web", func(o *unstructured.Unstructured) {
				o.Object["spec"] = map[string]any{"replicas": int64(7)}
			})
			s.Called("child child")
			s.replicas(1)
			s.Wrote("patch deployments default/web")
		}},
		"what somebody sets besides is left alone": {parent, func(s *stage) {
			s.begin()
			s.Update(deployments, "default", "web", func(o *unstructured.Unstructured) {
				o.Object["spec"] = map[string]any{"replicas": int64(1), "paused": true}
				o.SetLabels(map[string]string{"theirs": "yes"})
			})
			s.Called("child child")
			s.Wrote()
			s.size(2)
			s.replicas(2)
			o := s.child()
			if paused, _, _ := unstructured.NestedBool(o.Object, "spec", "paused"); !paused || o.GetLabels()["theirs"] == "" {
				s.t.Errorf("what others had set is gone: %v", o.Object)
			}
		}},
		"what only reads sees what the handler has applied so far": {
			func(foo *dsl.Resource, j *journal) {
				foo.Owns(deployments)
				foo.OnReconcile("child", j.Note("child", func(ctx context.Context, r *dsl.Request) error {
					before, err := r.Subject.Children.List(deployments)
					err = errors.Join(err, keepsChild(ctx, r))
					after, err2 := r.Subject.Children.Get(deployments, "web")
					if len(before) > 0 || after == nil {
						j.Add(fmt.Sprintf("%d children before, %v after", len(before), after))
					}
					return errors.Join(err, err2)
				}))
			}, func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("child create")
			},
		},
		"what is desired no more is taken away": {
			func(foo *dsl.Resource, j *journal) {
				foo.Owns(deployments)
				foo.OnReconcile("child", func(ctx ctx, r *dsl.Request) error {
					d := deployment("web", int64(1))
					if size, _ := dsl.MustParsePath("spec.size").In(r.Object.Object); size == int64(1) {
						d["spec"].(map[string]any)["paused"] = true
					}
					_, err := r.Children.Apply(ctx, d)
					return err
				})
			}, func(s *stage) {
				s.begin()
				s.size(2)
				if _, found, _ := unstructured.NestedBool(s.child().Object, "spec", "paused"); found {
					s.t.Error("spec.paused is still there")
				}
			},
		},
		"a child that is deleted is made again": {parent, func(s *stage) {
			s.begin()
			s.Delete(deployments, "default", "web")
			s.Called("child child")
			s.replicas(1)
		}},
		"one that is being deleted is left alone until it is gone": {parent, func(s *stage) {
			s.begin()
			s.Update(deployments, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/x"}) })
			s.Delete(deployments, "default", "web")
			s.Forget()
			s.size(2)
			s.Advance(time.Minute)
			s.Wrote()
			s.Update(deployments, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			s.Advance(time.Minute)
			s.replicas(2)
		}},
		"a deletion that no watch shows is noticed": {parent, func(s *stage) {
			s.begin()
			s.HoldWatches(deployments)
			s.Delete(deployments, "default", "web")
			s.ExpireWatches(deployments)
			s.ReleaseWatches(deployments)
			s.Advance(time.Minute)
			s.Called("child child")
			s.replicas(1)
		}},
		"an answer that is lost makes no second child": {parent, func(s *stage) {
			s.Launch()
			s.LoseNext("patch", deployments)
			s.Create(web)
			s.Advance(time.Minute)
			s.replicas(1)
			s.Wrote("patch deployments default/web")
		}},
		"a child in another namespace is refused for good": {
			func(foo *dsl.Resource, j *journal) {
				foo.Owns(deployments)
				foo.OnReconcile("child", j.Note("child", func(ctx ctx, r *dsl.Request) error {
					d := deployment("web", int64(1))
					d["metadata"].(map[string]any)["namespace"] = "kube-system"
					_, err := r.Children.Apply(ctx, d)
					return err
				}))
			}, func(s *stage) {
				s.begin()
				s.Advance(time.Hour)
				s.Called()
				s.Wrote()
			},
		},
		"one of a kind that is not owned is refused for good": {
			func(foo *dsl.Resource, j *journal) { foo.OnReconcile("child", j.Note("child", keepsChild)) },
			func(s *stage) {
				s.begin()
				s.Advance(time.Hour)
				s.Called()
				if len(s.Events()) != 1 {
					s.t.Errorf("events %+v", s.Events())
				}
			},
		},
		"when children change owners both get to know": {parent, func(s *stage) {
			s.begin()
			second := s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: second}, spec: {size: 1}}`)
			s.Forget()
			s.Update(deployments, "default", "web", func(o *unstructured.Unstructured) {
				refs := o.GetOwnerReferences()
				refs[0].Name, refs[0].UID = "second", second.GetUID()
				o.SetOwnerReferences(refs)
			})
			s.Called("child child", "child child")
		}},
		"the children of an object that is deleted are no news to it": {parent, func(s *stage) {
			s.begin()
			s.remove()
			s.Settle()
			s.Delete(deployments, "default", "web")
			s.Called()
			s.Wrote()
		}},
	})
}

// TestChildrenOfAnEarlierOwner holds that an object that is made again under its name waits for what
// the garbage collector has yet to take, and goes on when that is gone.
func TestChildrenOfAnEarlierOwner(t *testing.T) {
	tries := func(foo *dsl.Resource, j *journal) {
		foo.Owns(deployments)
		foo.OnReconcile("child", j.Note("child", func(ctx ctx, r *dsl.Request) error {
			err := keepsChild(ctx, r)
			if err != nil {
				j.Add(err.Error())
			}
			return err
		}), dsl.Retries(1))
	}
	waits := []string{"child create", "waiting for Deployment default/web of an earlier Foo default/web to be collected"}
	scenarios(t, map[string]scenario{
		"it is no failure, however long it takes, and ends at once": {tries, func(s *stage) {
			s.begin()
			s.remove()
			s.gone()
			s.Create(web)
			s.Called(waits...)
			s.Advance(10*time.Minute + 30*time.Second)
			s.Called(slices.Repeat(waits, 10)...)
			s.Wrote()
			if len(s.Events()) > 0 {
				s.t.Errorf("events %v", s.Events())
			}
			s.Delete(deployments, "default", "web")
			s.Called("child create")
			s.replicas(1)
			s.Wrote("patch deployments default/web")
		}},
		"one that is being deleted is waited for as well": {tries, func(s *stage) {
			s.begin()
			s.Update(deployments, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/x"}) })
			s.Delete(deployments, "default", "web")
			s.remove()
			s.Forget()
			s.Create(web)
			s.Called(waits...)
			s.Update(deployments, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			s.Advance(time.Minute)
			s.replicas(1)
		}},
		"one of another object of the name is somebody's": {tries, func(s *stage) {
			s.Launch()
			yes := true
			for _, kind := range []string{"Foo", "Bar"} {
				d := &unstructured.Unstructured{Object: deployment("web", int64(7))}
				d.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.org/v1", Kind: kind, Name: "web", UID: "u-9", Controller: &yes}})
				s.Create(d.Object)
				s.Create(web)
				s.Called("child create", "applying Deployment default/web: it exists and is not owned by this object (its owner is "+kind+" web); rename the child, or delete the object")
				s.remove()
				s.Delete(deployments, "default", "web")
				s.Forget()
			}
		}},
	})
}

// TestForeignChildren holds that objects of others are never adopted silently.
func TestForeignChildren(t *testing.T) {
	const theirs = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 7}}`
	var failure error
	tries := func(foo *dsl.Resource, j *journal) {
		foo.Owns(deployments)
		foo.OnReconcile("child", j.Note("child", func(ctx ctx, r *dsl.Request) error {
			failure = keepsChild(ctx, r)
			return failure
		}))
	}
	refused := func(s *stage) {
		s.t.Helper()
		s.Settle()
		if !errors.Is(failure, dsl.ErrNotOwned) {
			s.t.Errorf("the error is %v", failure)
		}
		s.replicas(7)
		if refs := s.child().GetOwnerReferences(); len(refs) > 0 {
			s.t.Errorf("the owners are %v", refs)
		}
		for _, m := range s.child().GetManagedFields() {
			if m.Manager == "op" {
				s.t.Error("the operator owns fields of it")
			}
		}
	}
	scenarios(t, map[string]scenario{
		"one that the cache has": {tries, func(s *stage) {
			s.Create(theirs)
			s.Launch()
			s.Create(web)
			refused(s)
			s.Wrote()
			s.Delete(deployments, "default", "web")
			s.Advance(time.Minute)
			s.replicas(1)
		}},
		"one that the cache does not have yet": {tries, func(s *stage) {
			s.Launch()
			s.HoldWatches(deployments)
			s.Create(theirs)
			s.Create(web)
			refused(s)
			s.Wrote("patch deployments default/web: 409")
		}},
		"one that is made in the very moment": {tries, func(s *stage) {
			s.Launch()
			s.FailNext("get", deployments, notFound())
			s.HoldWatches(deployments)
			s.Create(theirs)
			s.Create(web)
			refused(s)
		}},
	})
}

// TestChildrenRequests holds what handlers see of their children.
func TestChildrenRequests(t *testing.T) {
	look := func(r *dsl.Request) string {
		one, err1 := r.Children.Get(deployments, "web")
		none, err2 := r.Children.Get(deployments, "nobody")
		list, err3 := r.Children.List(deployments)
		_, err4 := r.Children.List("pods.v1")
		return fmt.Sprint(one != nil, err1, none == nil, err2, len(list), err3, dsl.IsPermanent(err4))
	}
	scenarios(t, map[string]scenario{
		"a child is seen as it was just applied": {
			func(foo *dsl.Resource, j *journal) {
				foo.Owns(deployments)
				foo.OnCreate("child", keepsChild)
				foo.OnCreate("look", func(_ ctx, r *dsl.Request) error {
					j.Add(look(r))
					return nil
				})
			}, func(s *stage) {
				s.Launch()
				s.HoldWatches(deployments)
				s.Create(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: theirs}, spec: {replicas: 7}}`)
				s.Create(web)
				s.Called("true <nil> true <nil> 1 <nil> true")
			},
		},
		"a child is deleted once, and one that is not owned never": {
			func(foo *dsl.Resource, j *journal) {
				foo.Owns(deployments)
				foo.OnCreate("child", keepsChild)
				foo.OnUpdate("change", j.Note("change", func(ctx ctx, r *dsl.Request) error {
					return errors.Join(r.Children.Delete(ctx, deployments, "web"), r.Children.Delete(ctx, deployments, "theirs"),
						r.Children.Delete(ctx, deployments, "nobody"))
				}))
			}, func(s *stage) {
				s.begin()
				s.Create(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: theirs}, spec: {replicas: 7}}`)
				s.size(2)
				s.Wrote("delete deployments default/web", "patch foos default/web")
				s.size(3)
				s.Wrote("patch foos default/web")
				if s.child() != nil || s.Get(deployments, "default", "theirs") == nil {
					s.t.Error("the wrong one was deleted")
				}
			},
		},
	})
}

// TestChildrenOfClusterScoped holds that an object without a namespace can own some with one, which
// costs it a write of its record before the first.
func TestChildrenOfClusterScoped(t *testing.T) {
	const teams = "teams.v1.example.com"
	enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
		c.Serve(enginetest.Resource{Name: teams, Kind: "Team", ClusterScoped: true})
		s := newStage(t, c)
		s.Operator.Resource(teams, func(team *dsl.Resource) {
			team.Owns("configmaps.v1", "namespaces.v1")
			team.OnReconcile("keep", s.Note("keep", func(ctx ctx, r *dsl.Request) error {
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
