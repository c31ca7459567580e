// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package resources_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// watchesConfigMapsToo declares a handler of another resource.
func watchesConfigMapsToo(s *scene.Stage) {
	s.Operator.Resource("configmaps.v1", func(cm *dsl.Resource) { cm.OnReconcile("beside", s.Note("beside")) })
}

// wantConfigMapHandled checks that the other resource is worked on.
func wantConfigMapHandled(s *scene.Stage, name string) {
	s.T.Helper()
	s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: ` + name + `}}`)
	s.Called("beside create")
}

// TestAResourceThatIsNotServedDegradesAloneAndHeals is law 9: a resource that is not served, or not allowed, degrades itself
// alone and heals by itself.
func TestAResourceThatIsNotServedDegradesAloneAndHeals(t *testing.T) {
	crd := kit.Resource{Name: scene.Foos, Kind: "Foo"}
	scene.PlayAll(t, map[string]scene.Scenario{
		"a CRD that is missing is waited for, and found at once when it comes": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			watchesConfigMapsToo(s)
			s.Unserve(scene.Foos)
			s.Launch()
			scene.WantUnwell(s, "resource/"+scene.Foos, "not served")
			wantConfigMapHandled(s, "a")
			s.Advance(10 * time.Minute)
			s.Serve(crd)
			s.Create(scene.Web)
			s.Called("made create")
			scene.WantWell(s)
		}},
		"one that comes right after it was found missing is found at once": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			s.Unserve(scene.Foos)
			s.Launch()
			s.Serve(crd)
			s.Create(scene.Web)
			s.Called("made create")
		}},
		"without the right to watch CRDs, the schema is that of the CRD when it is served": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.On(scene.CreateAndUpdate(), "made", j.Note("made"), dsl.Needs("patch", "self/status"))
		}, Play: func(s *scene.Stage) {
			s.Forbid("list", "customresourcedefinitions.apiextensions.k8s.io")
			s.Forbid("watch", "customresourcedefinitions.apiextensions.k8s.io")
			s.Unserve(scene.Foos)
			end := s.LagDiscovery()
			s.Serve(crd) // it is there, and not served yet
			s.Launch()
			s.Unserve(scene.Foos)
			s.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo", ObservedGeneration: true})
			end()
			s.Create(scene.Web)
			s.Advance(10 * time.Minute)
			s.WantStatus(map[string]any{"observedGeneration": int64(1)})
		}},
		"without the right to watch CRDs it is found by looking again": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			s.Forbid("list", "customresourcedefinitions.apiextensions.k8s.io")
			s.Forbid("watch", "customresourcedefinitions.apiextensions.k8s.io")
			s.Unserve(scene.Foos)
			s.Launch()
			s.Advance(10 * time.Minute)
			s.Serve(crd)
			s.Create(scene.Web)
			s.Advance(10 * time.Second)
			s.Called("made create")
			scene.WantWell(s)
		}},
		"a CRD that is deleted takes its objects along, and one that comes again is new": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			watchesConfigMapsToo(s)
			s.Begin()
			s.Unserve(scene.Foos)
			s.Called("left delete")
			s.Advance(time.Minute)
			scene.WantUnwell(s, "resource/"+scene.Foos, "not served")
			wantConfigMapHandled(s, "a")
			s.Serve(crd)
			s.Create(scene.Web)
			s.Advance(time.Second)
			s.Called("made create")
			scene.WantWell(s)
		}},
		"a CRD that is deleted is known to be gone though the server says for a while that it serves it": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			watchesConfigMapsToo(s)
			s.Unserve(scene.Foos)
			s.Launch() // and watches for the CRD
			s.Serve(crd)
			s.Create(scene.Web)
			s.Advance(time.Second)
			s.Called("made create")
			end := s.LagDiscovery()
			s.Unserve(scene.Foos)
			s.Called("left delete")
			s.Advance(5 * time.Second)
			end()
			s.Advance(time.Minute)
			scene.WantUnwell(s, "resource/"+scene.Foos, "not served", "is its CRD installed?")
			wantConfigMapHandled(s, "a")
			s.Serve(crd)
			s.Create(scene.Web)
			s.Advance(time.Second)
			s.Called("made create")
			scene.WantWell(s)
		}},
		"a CRD that is deleted deletes what no finalizer holds": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnDelete("left", j.Note("left"), dsl.NoFinalizer())
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.Unserve(scene.Foos)
				s.Advance(time.Minute)
				s.Called("left delete")
			},
		},
		"one that comes again with another scope is found": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Begin()
			s.Unserve(scene.Foos)
			s.Advance(time.Minute)
			s.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo", ClusterScoped: true})
			s.Create(scene.Web)
			s.Advance(time.Second)
			if calls := s.Take(); len(calls) != 1 { // a create or a resume, as the first listing has it or not
				s.T.Errorf("calls %v", calls)
			}
		}},
	})
}

// TestARefusedOrBrokenResourceDegradesAloneAndHeals is law 9 for missing rights, broken API groups and kinds of children.
func TestARefusedOrBrokenResourceDegradesAloneAndHeals(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a missing right is named, and found again when it is given": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			watchesConfigMapsToo(s)
			s.Forbid("list", scene.Foos)
			s.Launch()
			s.Create(scene.Web)
			scene.WantUnwell(s, "resource/"+scene.Foos, "forbidden", "list")
			wantConfigMapHandled(s, "a")
			s.Advance(10 * time.Minute)
			s.Called()
			s.Allow("list", scene.Foos)
			s.Advance(10 * time.Second)
			s.Called("sync resume")
			scene.WantWell(s)
		}},
		"a right that is taken away while it is used is named": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Begin()
			s.Forbid("watch", scene.Foos)
			s.CutWatches(scene.Foos)
			s.Advance(time.Minute)
			scene.WantUnwell(s, "watch")
			s.Resize(2)
			s.Allow("watch", scene.Foos)
			s.Advance(2 * time.Minute)
			s.Called("sync update")
			scene.WantWell(s)
		}},
		"a broken API group is no other's fault, and heals": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			watchesConfigMapsToo(s)
			s.Break("example.com")
			s.Launch()
			scene.WantUnwell(s, "resource/"+scene.Foos, "broken")
			wantConfigMapHandled(s, "a")
			s.Advance(10 * time.Minute)
			s.Mend("example.com")
			s.Create(scene.Web)
			s.Advance(10 * time.Second)
			s.Called("sync resume")
			scene.WantWell(s)
		}},
		"a group that breaks while it is watched keeps what is known, and heals": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			watchesConfigMapsToo(s)
			s.Begin()
			s.Break("example.com")
			s.CutWatches(scene.Foos)
			s.Advance(time.Minute)
			scene.WantUnwell(s, "resource/"+scene.Foos)
			wantConfigMapHandled(s, "a")
			s.Called()
			s.Mend("example.com")
			s.Resize(2)
			s.Advance(time.Minute)
			s.Called("changed update", "sized update")
			scene.WantWell(s)
		}},
		"a child whose resource is missing is a failure of the handler that wants it": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns("bars.v1.example.org")
				foo.OnReconcile("child", j.Note("child", scene.KeepsBar))
				foo.OnReconcile("sync", j.Note("sync"))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("child create", "sync create")
				scene.WantUnwell(s, "child/"+scene.Foos+"/bars.v1.example.org", "not served")
				s.Serve(kit.Resource{Name: "bars.v1.example.org", Kind: "Bar"})
				s.Advance(time.Minute)
				if s.Get("bars.v1.example.org", "default", "web") == nil {
					s.T.Error("the child was not made when it could be")
				}
				scene.WantWell(s)
			},
		},
	})
}

// TestTheScopeDecidesWhichObjectsAreHandled holds which objects an operator sees.
func TestTheScopeDecidesWhichObjectsAreHandled(t *testing.T) {
	in := func(namespace string) string {
		return `{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, namespace: ` + namespace + `}}`
	}
	named := func(foo *dsl.Resource, j *kit.Journal) {
		where := func(id string) dsl.Func {
			return func(_ context.Context, r *dsl.Request) error {
				j.Add(id + " " + r.Object.GetNamespace() + " " + string(r.Cause))
				return nil
			}
		}
		foo.OnReconcile("sync", where("sync"))
		foo.OnDelete("left", where("left"), dsl.NoFinalizer())
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"names alone are taken as they are": {Operator: named, Play: func(s *scene.Stage) {
			s.Operator.Scope.Namespaces = []string{"a", "b"}
			s.Launch()
			for _, ns := range []string{"a", "b", "c"} {
				s.Create(in(ns))
			}
			s.CalledInAnyOrder("sync a create", "sync b create")
			scene.WantWell(s)
		}},
		"globs follow the namespaces that come and go": {Operator: named, Play: func(s *scene.Stage) {
			s.Operator.Scope.Namespaces = []string{"team-*", "!team-old"}
			s.Create(in("team-a"))
			s.Launch()
			s.Called("sync team-a resume")
			s.Create(in("team-old"))
			s.Create(in("other"))
			s.Create(in("team-b"))
			s.Advance(time.Second)
			s.Settle()
			got := s.Take()
			if len(got) != 1 || got[0] != "sync team-b create" && got[0] != "sync team-b resume" {
				s.T.Errorf("calls %v", got)
			}
			s.Delete("namespaces.v1", "", "team-a")
			s.Advance(time.Second)
			s.Called("left team-a delete")
			scene.WantWell(s)
			s.Create(in("team-a"))
			s.Advance(time.Second)
			if got := s.Take(); len(got) != 1 {
				s.T.Errorf("calls %v for a namespace that came again", got)
			}
		}},
		"a pattern that only takes out leaves the rest": {Operator: named, Play: func(s *scene.Stage) {
			s.Operator.Scope.Namespaces = []string{"!kube-*"}
			s.Launch()
			s.Create(in("kube-system"))
			s.Create(in("default"))
			s.Called("sync default create")
		}},
		"a right in one namespace alone is enough for it": {Operator: named, Play: func(s *scene.Stage) {
			s.Operator.Scope.Namespaces = []string{"a", "b"}
			s.Forbid("list", scene.Foos, "b")
			s.Launch()
			s.Create(in("a"))
			s.Create(in("b"))
			s.Called("sync a create")
			scene.WantUnwell(s, "list in namespace b")
		}},
		"objects that a selector does not select do not exist": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.LabelSelector = "tier=gold"
				named(foo, j)
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called()
				s.Set("gold", "metadata", "labels", "tier")
				s.Called("sync default create")
				s.Set("iron", "metadata", "labels", "tier")
				s.Called("left default delete")
			},
		},
		"objects without a namespace are in every scope": {Operator: named, Play: func(s *scene.Stage) {
			s.Operator.Scope.Namespaces = []string{"team-*"}
			s.Operator.Resource("nodes.v1", func(n *dsl.Resource) { n.OnReconcile("node", s.Note("node")) })
			s.Launch()
			s.Create(`{apiVersion: v1, kind: Node, metadata: {name: one}}`)
			s.Called("node create")
		}},
	})
}

// TestHandlersWorkTheSameWithEachCacheProfile holds that handlers work the same whatever is held in memory.
func TestHandlersWorkTheSameWithEachCacheProfile(t *testing.T) {
	for _, profile := range []dsl.CacheProfile{dsl.CacheCompact, dsl.CacheMetadata, dsl.CacheLive} {
		t.Run(string(profile), func(t *testing.T) {
			scene.Play(t, scene.Scenario{
				Operator: func(foo *dsl.Resource, j *kit.Journal) {
					foo.Cache = profile
					foo.OnReconcile("sync", j.Note("sync", func(_ context.Context, r *dsl.Request) error {
						size, found, _ := unstructured.NestedInt64(r.Object.Object, "spec", "size")
						if found != (profile != dsl.CacheMetadata) {
							j.Add("the spec is seen, or not, as it should not be")
						}
						if found {
							r.Patch.SetStatus("size", size)
						}
						r.Patch.Label("kind", r.Object.GetKind())
						return nil
					}))
					foo.OnDelete("left", j.Note("left"))
				},
				Play: func(s *scene.Stage) {
					s.Launch()
					s.Create(scene.Web)
					s.Settle()
					if calls := s.Take(); len(calls) == 0 || calls[0] != "sync create" {
						s.T.Errorf("calls %v", calls)
					}
					if got := s.Web().GetLabels()["kind"]; got != "Foo" {
						s.T.Errorf("the label is %q", got)
					}
					s.Forget()
					s.Advance(time.Hour)
					s.Wrote()
					s.Remove()
					s.Called("left delete")
					s.WantGone()
				},
			})
		})
	}
}
