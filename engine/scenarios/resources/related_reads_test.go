// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package resources_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestHandlersSeeAllRelatedObjectsOrNone holds that handlers see all of the related objects or none, and that they
// are run when those can be seen.
func TestHandlersSeeAllRelatedObjectsOrNone(t *testing.T) {
	bars := dsl.ResourceName{Resource: "bars", Version: "v1", Group: "example.org"}
	const bar = `{apiVersion: example.org/v1, kind: Bar, metadata: {name: a}, data: {v: "1"}}`
	serve := func(s *scene.Stage) { s.Serve(kit.Resource{Name: "bars.v1.example.org", Kind: "Bar"}) }
	health := func(s *scene.Stage, want string) {
		s.T.Helper()
		for _, c := range s.Process.Engine().Ready() {
			if c.Name == "related/"+scene.Foos+"/them" && strings.HasPrefix(c.Message, want) && (want == "") == (c.Message == "") {
				return
			}
		}
		s.T.Errorf("health %+v, want %q of the relation", s.Process.Engine().Ready(), want)
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"a resource that is served later": {Operator: scene.NotesRelated(dsl.Relation{Resource: bars}, dsl.Reconcile), Play: func(s *scene.Stage) {
			s.Launch()
			health(s, "not served")
			s.Create(scene.Web)
			s.Called("web create: error")
			s.Advance(10 * time.Minute)
			s.Forget()
			serve(s)
			s.Create(bar)
			s.Advance(10 * time.Second)
			wantLastCall(s, "default/a=1")
			health(s, "")
			s.Unserve("bars.v1.example.org")
			s.Advance(10 * time.Minute)
			s.Called("web related:") // its objects were deleted with it
			health(s, "not served")
			serve(s)
			s.Create(bar)
			s.Advance(10 * time.Second)
			wantLastCall(s, "web related: default/a=1")
		}},
		"one that has no objects": {Operator: scene.NotesRelated(dsl.Relation{Resource: bars}, dsl.Reconcile), Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Advance(10 * time.Minute)
			s.Forget()
			serve(s)
			s.Advance(15 * time.Second)
			s.Called("web create:")
		}},
		"one that may be read later": {Operator: scene.NotesRelated(dsl.Relation{}, dsl.Reconcile), Play: func(s *scene.Stage) {
			s.Create(settingsMap("a", "", "", "1"))
			s.Forbid("list", scene.ConfigMaps)
			s.Launch()
			health(s, "forbidden: list")
			s.Create(scene.Web)
			s.Advance(10 * time.Minute)
			s.Forget()
			s.Allow("list", scene.ConfigMaps)
			s.Advance(15 * time.Second)
			s.Called("web create: default/a=1")
		}},
		"a handler that did not look runs": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Relates(dsl.Relation{Name: "them", Resource: bars})
				foo.OnReconcile("sync", j.Note("sync"))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("sync create")
				serve(s)
				s.Advance(15 * time.Second)
				s.Called("sync related")
			},
		},
	})
}

// wantLastCall checks how the last call ends, and that none has failed: the listing may be over before the
// first object comes.
func wantLastCall(s *scene.Stage, want string) {
	s.T.Helper()
	s.Settle()
	calls := s.Take()
	if len(calls) == 0 || !strings.HasSuffix(calls[len(calls)-1], want) || strings.Contains(strings.Join(calls, ""), "error") {
		s.T.Errorf("calls %q, want the last one to be %s", calls, want)
	}
}

// TestFiltersSeeRelatedObjects holds that filters see related objects and children.
func TestFiltersSeeRelatedObjects(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a new object is handled when its related one comes": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.Relates(dsl.Relation{Name: "them", Resource: dsl.ResourceName{Resource: "configmaps", Version: "v1"}})
				foo.OnCreate("made", j.Note("made"), dsl.When(func(r *dsl.Subject) (bool, error) {
					found, err := r.Related.Get("them")
					children, err2 := r.Children.List(scene.Deployments)
					return len(found) > 0 && len(children) == 0 && !r.Now.IsZero(), errors.Join(err, err2)
				}))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Called()
				s.Create(settingsMap("a", "", "", "1"))
				s.Called("made create")
			},
		},
	})
}

// TestClusterScopedObjectsMayBeRelated holds that objects without namespaces relate and are related.
func TestClusterScopedObjectsMayBeRelated(t *testing.T) {
	const teams = "teams.v1.example.com"
	scene.PlayAll(t, map[string]scene.Scenario{
		"a related resource without namespaces has none to ask for": {
			Operator: scene.NotesRelated(dsl.Relation{
				Resource: dsl.ResourceName{Resource: "teams", Version: "v1", Group: "example.com"}, Select: scene.RelatedByName,
			}, dsl.Reconcile), Play: func(s *scene.Stage) {
				s.Serve(kit.Resource{Name: teams, Kind: "Team", ClusterScoped: true})
				s.Launch()
				s.Create(scene.FooWithRef("web", "red"))
				s.Called("web create:")
				s.Create(`{apiVersion: example.com/v1, kind: Team, metadata: {name: blue}}`)
				s.Create(`{apiVersion: example.com/v1, kind: Team, metadata: {name: red}}`)
				s.Called("web related: /red=")
			},
		},
		"names without a namespace are looked for in all": {
			Operator: scene.NotesRelated(dsl.Relation{Select: func(r *dsl.Subject) (dsl.Selection, error) {
				s, err := scene.RelatedByName(r)
				s.Namespace = ""
				return s, err
			}}, dsl.Reconcile), Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.FooWithRef("web", "a"))
				s.Called("web create:")
				s.Create(settingsMap("other/a", "", "", "1"))
				s.Called("web related: other/a=1")
			},
		},
	})
}

// TestARelatedEventEvaluatesFewConditions holds that an event costs each owner a question or two, and
// not one for every object.
func TestARelatedEventEvaluatesFewConditions(t *testing.T) {
	const owners, objects = 100, 100
	var asked, ran atomic.Int64
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Relates(dsl.Relation{Name: "them", Resource: dsl.ResourceName{Resource: "configmaps", Version: "v1"},
				Select: func(r *dsl.Subject) (dsl.Selection, error) {
					s, err := byMatch(r)
					inner := s.Match
					s.Match = func(o *unstructured.Unstructured) (bool, error) {
						asked.Add(1)
						return inner(o)
					}
					return s, err
				}})
			foo.OnRelated("see", func(context.Context, *dsl.Request) error { ran.Add(1); return nil })
		},
		Play: func(s *scene.Stage) {
			for i := range objects {
				s.Create(settingsMap(fmt.Sprint("c", i), "", fmt.Sprint("web-", i), "1"))
				s.Create(scene.FooWithRef(fmt.Sprint("web-", i), "x"))
			}
			s.Launch()
			asked.Store(0)
			for i := range 10 {
				setData(s, fmt.Sprint("c", i), "v", "2")
				s.Settle()
			}
			if n := ran.Load(); n != 10 {
				s.T.Errorf("%d runs, want one for each event", n)
			}
			if n := asked.Load(); n > 10*(2*owners+objects) {
				s.T.Errorf("10 events are %d questions", n)
			}
			s.Wrote()
		},
	})
}

// TestTheClientReadsRelatedObjectsFromTheCache holds that the client reads what is watched from the cache.
func TestTheClientReadsRelatedObjectsFromTheCache(t *testing.T) {
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Relates(dsl.Relation{Name: "them", Resource: dsl.ResourceName{Resource: "configmaps", Version: "v1"}})
			foo.OnRelated("see", func(ctx context.Context, r *dsl.Request) error {
				found, err := r.Client.List(ctx, scene.ConfigMaps, "", "")
				j.Add(fmt.Sprint(len(found), " ", err))
				return nil
			})
		},
		Play: func(s *scene.Stage) {
			s.Begin()
			s.FailNext("list", scene.ConfigMaps, scene.ErrAgain)
			s.Create(settingsMap("a", "", "", "1"))
			s.Called("1 <nil>")
		},
	})
}

// TestAPassWaitsForItsOwnWritesToRelatedObjects is law 6 for what the relations watch: the next reconcile waits for what this one
// wrote, and is woken when the cache has it, whether the object asked for it or not.
func TestAPassWaitsForItsOwnWritesToRelatedObjects(t *testing.T) {
	for name, want := range map[string]string{"other": "update 1", "another": "update 0"} {
		scene.Play(t, scene.Scenario{
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Relates(dsl.Relation{Name: "them", Resource: dsl.ResourceName{Resource: "configmaps", Version: "v1"},
					Select: func(*dsl.Subject) (dsl.Selection, error) { return dsl.Selection{Names: []string{name}}, nil }})
				foo.OnReconcile("write", func(ctx context.Context, r *dsl.Request) error {
					found, err := r.Related.Get("them")
					j.Add(fmt.Sprint(r.Cause, " ", len(found)))
					return errors.Join(err, scene.WritesElsewhere(ctx, r))
				})
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.HoldWatches(scene.ConfigMaps)
				s.Create(scene.Web)
				s.Called("create 0")
				s.Resize(2)
				s.Called()
				s.Advance(10*time.Minute + time.Second)
				s.Called()
				s.ReleaseWatches(scene.ConfigMaps)
				s.Called(want)
				s.Advance(time.Hour)
				s.Called()
			},
		})
	}
}
