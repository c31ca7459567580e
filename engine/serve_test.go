// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

// TestServing is law 9: a resource that is not served, or not allowed, degrades itself alone and
// heals by itself.
func TestServing(t *testing.T) {
	beside := func(s *stage) {
		s.Operator.Resource("configmaps.v1", func(cm *dsl.Resource) { cm.OnReconcile("beside", s.Note("beside")) })
	}
	works := func(s *stage, name string) {
		s.t.Helper()
		s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: ` + name + `}}`)
		s.Called("beside create")
	}
	crd := enginetest.Resource{Name: foos, Kind: "Foo"}
	scenarios(t, map[string]scenario{
		"a CRD that is missing is waited for, and found at once when it comes": {edges, func(s *stage) {
			beside(s)
			s.Unserve(foos)
			s.Launch()
			ill(s, "resource/"+foos, "not served")
			works(s, "a")
			s.Advance(10 * time.Minute)
			s.Serve(crd)
			s.Create(web)
			s.Called("made create")
			well(s)
		}},
		"one that comes right after it was found missing is found at once": {edges, func(s *stage) {
			s.Unserve(foos)
			s.Launch()
			s.Serve(crd)
			s.Create(web)
			s.Called("made create")
		}},
		"without the right to watch CRDs it is found by looking again": {edges, func(s *stage) {
			s.Forbid("list", "customresourcedefinitions.apiextensions.k8s.io")
			s.Forbid("watch", "customresourcedefinitions.apiextensions.k8s.io")
			s.Unserve(foos)
			s.Launch()
			s.Advance(10 * time.Minute)
			s.Serve(crd)
			s.Create(web)
			s.Advance(10 * time.Second)
			s.Called("made create")
			well(s)
		}},
		"a CRD that is deleted takes its objects along, and one that comes again is new": {edges, func(s *stage) {
			beside(s)
			s.begin()
			s.Unserve(foos)
			s.Called("left delete")
			s.Advance(time.Minute)
			ill(s, "resource/"+foos, "not served")
			works(s, "a")
			s.Serve(crd)
			s.Create(web)
			s.Advance(time.Second)
			s.Called("made create")
			well(s)
		}},
		"a CRD that is deleted is known to be gone though the server says for a while that it serves it": {edges, func(s *stage) {
			beside(s)
			s.Unserve(foos)
			s.Launch() // and watches for the CRD
			s.Serve(crd)
			s.Create(web)
			s.Advance(time.Second)
			s.Called("made create")
			end := s.LagDiscovery()
			s.Unserve(foos)
			s.Called("left delete")
			s.Advance(5 * time.Second)
			end()
			s.Advance(time.Minute)
			ill(s, "resource/"+foos, "not served", "is its CRD installed?")
			works(s, "a")
			s.Serve(crd)
			s.Create(web)
			s.Advance(time.Second)
			s.Called("made create")
			well(s)
		}},
		"a CRD that is deleted deletes what no finalizer holds": {
			func(foo *dsl.Resource, j *journal) { foo.OnDelete("left", j.Note("left"), dsl.NoFinalizer()) },
			func(s *stage) {
				s.begin()
				s.Unserve(foos)
				s.Advance(time.Minute)
				s.Called("left delete")
			},
		},
		"one that comes again with another scope is found": {level, func(s *stage) {
			s.begin()
			s.Unserve(foos)
			s.Advance(time.Minute)
			s.Serve(enginetest.Resource{Name: foos, Kind: "Foo", ClusterScoped: true})
			s.Create(web)
			s.Advance(time.Second)
			if calls := s.Take(); len(calls) != 1 { // a create or a resume, as the first listing has it or not
				s.t.Errorf("calls %v", calls)
			}
		}},
		"a missing right is named, and found again when it is given": {level, func(s *stage) {
			beside(s)
			s.Forbid("list", foos)
			s.Launch()
			s.Create(web)
			ill(s, "resource/"+foos, "forbidden", "list")
			works(s, "a")
			s.Advance(10 * time.Minute)
			s.Called()
			s.Allow("list", foos)
			s.Advance(10 * time.Second)
			s.Called("sync resume")
			well(s)
		}},
		"a right that is taken away while it is used is named": {level, func(s *stage) {
			s.begin()
			s.Forbid("watch", foos)
			s.CutWatches(foos)
			s.Advance(time.Minute)
			ill(s, "watch")
			s.size(2)
			s.Allow("watch", foos)
			s.Advance(2 * time.Minute)
			s.Called("sync update")
			well(s)
		}},
		"a broken API group is no other's fault, and heals": {level, func(s *stage) {
			beside(s)
			s.Break("example.com")
			s.Launch()
			ill(s, "resource/"+foos, "broken")
			works(s, "a")
			s.Advance(10 * time.Minute)
			s.Mend("example.com")
			s.Create(web)
			s.Advance(10 * time.Second)
			s.Called("sync resume")
			well(s)
		}},
		"a group that breaks while it is watched keeps what is known, and heals": {edges, func(s *stage) {
			beside(s)
			s.begin()
			s.Break("example.com")
			s.CutWatches(foos)
			s.Advance(time.Minute)
			ill(s, "resource/"+foos)
			works(s, "a")
			s.Called()
			s.Mend("example.com")
			s.size(2)
			s.Advance(time.Minute)
			s.Called("changed update", "sized update")
			well(s)
		}},
		"a child whose resource is missing is a failure of the handler that wants it": {
			func(foo *dsl.Resource, j *journal) {
				foo.Owns("bars.v1.example.org")
				foo.OnReconcile("child", j.Note("child", keepsBar))
				foo.OnReconcile("sync", j.Note("sync"))
			}, func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("child create", "sync create")
				ill(s, "child/"+foos+"/bars.v1.example.org", "not served")
				s.Serve(enginetest.Resource{Name: "bars.v1.example.org", Kind: "Bar"})
				s.Advance(time.Minute)
				if s.Get("bars.v1.example.org", "default", "web") == nil {
					s.t.Error("the child was not made when it could be")
				}
				well(s)
			},
		},
	})
}

// TestScope holds which objects an operator sees.
func TestScope(t *testing.T) {
	in := func(namespace string) string {
		return `{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, namespace: ` + namespace + `}}`
	}
	named := func(foo *dsl.Resource, j *journal) {
		where := func(id string) dsl.Func {
			return func(_ ctx, r *dsl.Request) error {
				j.Add(id + " " + r.Object.GetNamespace() + " " + string(r.Cause))
				return nil
			}
		}
		foo.OnReconcile("sync", where("sync"))
		foo.OnDelete("left", where("left"), dsl.NoFinalizer())
	}
	scenarios(t, map[string]scenario{
		"names alone are taken as they are": {named, func(s *stage) {
			s.Operator.Scope.Namespaces = []string{"a", "b"}
			s.Launch()
			for _, ns := range []string{"a", "b", "c"} {
				s.Create(in(ns))
			}
			s.CalledInAnyOrder("sync a create", "sync b create")
			well(s)
		}},
		"globs follow the namespaces that come and go": {named, func(s *stage) {
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
				s.t.Errorf("calls %v", got)
			}
			s.Delete("namespaces.v1", "", "team-a")
			s.Advance(time.Second)
			s.Called("left team-a delete")
			well(s)
			s.Create(in("team-a"))
			s.Advance(time.Second)
			if got := s.Take(); len(got) != 1 {
				s.t.Errorf("calls %v for a namespace that came again", got)
			}
		}},
		"a pattern that only takes out leaves the rest": {named, func(s *stage) {
			s.Operator.Scope.Namespaces = []string{"!kube-*"}
			s.Launch()
			s.Create(in("kube-system"))
			s.Create(in("default"))
			s.Called("sync default create")
		}},
		"a right in one namespace alone is enough for it": {named, func(s *stage) {
			s.Operator.Scope.Namespaces = []string{"a", "b"}
			s.Forbid("list", foos, "b")
			s.Launch()
			s.Create(in("a"))
			s.Create(in("b"))
			s.Called("sync a create")
			ill(s, "list in namespace b")
		}},
		"objects that a selector does not select do not exist": {
			func(foo *dsl.Resource, j *journal) {
				foo.LabelSelector = "tier=gold"
				named(foo, j)
			}, func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called()
				s.set("gold", "metadata", "labels", "tier")
				s.Called("sync default create")
				s.set("iron", "metadata", "labels", "tier")
				s.Called("left default delete")
			},
		},
		"objects without a namespace are in every scope": {named, func(s *stage) {
			s.Operator.Scope.Namespaces = []string{"team-*"}
			s.Operator.Resource("nodes.v1", func(n *dsl.Resource) { n.OnReconcile("node", s.Note("node")) })
			s.Launch()
			s.Create(`{apiVersion: v1, kind: Node, metadata: {name: one}}`)
			s.Called("node create")
		}},
	})
}

// TestCacheProfiles holds that handlers work the same whatever is held in memory.
func TestCacheProfiles(t *testing.T) {
	for _, profile := range []dsl.CacheProfile{dsl.CacheCompact, dsl.CacheMetadata, dsl.CacheLive} {
		t.Run(string(profile), func(t *testing.T) {
			perform(t, scenario{
				func(foo *dsl.Resource, j *journal) {
					foo.Cache = profile
					foo.OnReconcile("sync", j.Note("sync", func(_ ctx, r *dsl.Request) error {
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
				func(s *stage) {
					s.Launch()
					s.Create(web)
					s.Settle()
					if calls := s.Take(); len(calls) == 0 || calls[0] != "sync create" {
						s.t.Errorf("calls %v", calls)
					}
					if got := s.web().GetLabels()["kind"]; got != "Foo" {
						s.t.Errorf("the label is %q", got)
					}
					s.Forget()
					s.Advance(time.Hour)
					s.Wrote()
					s.remove()
					s.Called("left delete")
					s.gone()
				},
			})
		})
	}
}
