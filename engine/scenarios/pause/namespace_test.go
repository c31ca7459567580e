// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pause_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestOneWatchOfNamespaces holds that what is paused and what is in the scope come by one watch.
func TestOneWatchOfNamespaces(t *testing.T) {
	for name, scope := range map[string]dsl.Scope{
		"of an operator everywhere":     {},
		"with a scope of a glob":        {Namespaces: []string{"def*"}},
		"with a scope of labels":        {NamespaceSelector: "!old"},
		"with a scope of both, negated": {Namespaces: []string{"!old"}, NamespaceSelector: "!old"},
	} {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: scene.Syncs, Play: func(s *scene.Stage) {
				var watches atomic.Int64
				s.Adjust = append(s.Adjust, func(e *engine.Settings) {
					e.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
						return roundTrip(func(r *http.Request) (*http.Response, error) {
							if r.URL.Path == "/api/v1/namespaces" && r.URL.Query().Get("watch") != "" {
								watches.Add(1)
							}
							return next.RoundTrip(r)
						})
					})
				})
				s.Operator.Scope = scope
				s.Begin()
				pauseNamespace(s, "default", map[string]string{pausedKey: "looking"})
				s.Resize(2)
				s.Called()
				pauseNamespace(s, "default", nil)
				s.Called("sync update")
				if got := watches.Load(); got != 1 {
					s.T.Errorf("%d watches of namespaces", got)
				}
			}})
		})
	}
}

// roundTrip is a function that sends requests.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestAnnotationsOfNamespaces holds what the annotation of a namespace means beside what each pause does.
func TestAnnotationsOfNamespaces(t *testing.T) {
	looking := map[string]string{pausedKey: "looking"}
	scene.PlayAll(t, map[string]scene.Scenario{
		"objects in other namespaces are handled": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			s.Begin()
			pauseNamespace(s, "other", looking)
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, namespace: other}}`)
			s.Called()
			s.Resize(2)
			s.Called("changed update", "sized update")
			pauseNamespace(s, "other", nil)
			s.Called("made create")
		}},
		"the annotation of another operator means nothing": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Begin()
			pauseNamespace(s, "default", map[string]string{"other.handwerk.dev/paused": "x"})
			s.Resize(2)
			s.Called("sync update")
		}},
		"deletions wait, also of what is gone": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnDelete("held", j.Note("held"), dsl.Label("tier", "gold"))
			foo.OnDelete("left", j.Note("left"), dsl.NoFinalizer())
		}, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.GoldWeb)
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: other}}`)
			s.Forget()
			pauseNamespace(s, "default", looking)
			s.Remove()
			s.Delete(scene.Foos, "default", "other")
			s.Advance(time.Hour)
			s.Called()
			s.WantFinalizers(scene.Finalizer)
			pauseNamespace(s, "default", nil)
			s.CalledInAnyOrder("held delete", "left delete", "left delete")
			s.WantGone()
		}},
		"or deletions go on": {Operator: scene.EachCause, Play: func(s *scene.Stage) {
			s.Begin()
			pauseNamespace(s, "default", map[string]string{pausedKey: "looking", deletionsKey: "proceed"})
			s.Resize(2)
			s.Called()
			s.Remove()
			s.Called("left delete")
			s.WantGone()
		}},
		"a namespace that is gone is not paused": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Launch()
			pauseNamespace(s, "other", looking)
			s.Delete("namespaces.v1", "", "other")
			s.Settle()
			if got := s.Process.Engine().Pauses(); len(got) > 0 {
				s.T.Errorf("pauses %v", got)
			}
		}},
		"without the right to watch namespaces the operator works": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			pauseNamespace(s, "default", looking)
			for _, verb := range reads {
				s.Forbid(verb, "namespaces.v1")
			}
			s.Create(scene.Web)
			s.Launch()
			s.Called("sync resume")
			scene.WantWell(s)
			for _, verb := range reads {
				s.Allow(verb, "namespaces.v1")
			}
			s.Advance(2 * time.Minute)
			s.Resize(2)
			s.Called()
		}},
		"an operator that works in namespaces by name does not watch them": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Operator.Scope.Namespaces = []string{"default"}
			pauseNamespace(s, "default", looking)
			s.Begin()
			s.Resize(2)
			s.Called("sync update")
		}},
		"it is counted": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			metrics := ops.NewMetrics()
			s.Adjust = append(s.Adjust, func(e *engine.Settings) { e.Metrics = metrics })
			s.Begin()
			pauseNamespace(s, "default", looking)
			pauseNamespace(s, "other", looking)
			if got := pausedBy(s.T, metrics); got["namespace"] != 2 || got["operator"] != 0 {
				s.T.Errorf("handwerk_paused is %v", got)
			}
		}},
	})
}
