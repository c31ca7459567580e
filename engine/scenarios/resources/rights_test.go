// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package resources_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// questions counts the reviews of access that an operator asks for.
type questions struct {
	mu sync.Mutex
	n  int
}

// count is for Cluster.Start.
func (q *questions) count(s *engine.Settings) {
	s.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return scene.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
				q.mu.Lock()
				q.n++
				q.mu.Unlock()
			}
			return next.RoundTrip(r)
		})
	})
}

// take returns how many there were since it was called last.
func (q *questions) take() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.n
	q.n = 0
	return n
}

// createTeams makes namespaces with an object each.
func createTeams(s *scene.Stage, n int) {
	for i := range n {
		s.Create(team(i))
	}
}

func team(i int) string {
	return fmt.Sprintf(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, namespace: team-%d}}`, i)
}

// TestAMissingRightIsAFaultOfItsNamespaceAlone is law 9: what is missing in one namespace is a fault of that one.
func TestAMissingRightIsAFaultOfItsNamespaceAlone(t *testing.T) {
	everything := []string{"list", "watch", "patch"}
	scene.PlayAll(t, map[string]scene.Scenario{
		"one without rights among sixty leaves the others alone, and costs a question now and then": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			var asked questions
			s.Operator.Scope.Namespaces = []string{"team-*"}
			createTeams(s, 60)
			for _, verb := range everything {
				s.Forbid(verb, scene.Foos, "team-7")
			}
			s.Process = s.Start(s.Operator, asked.count)
			if n := len(s.Take()); n != 59 {
				s.T.Errorf("%d objects are handled, want 59", n)
			}
			scene.WantUnwell(s, "resource/"+scene.Foos, "forbidden: list, watch in namespace team-7")
			wantWatched(s, true)
			asked.take()
			s.Advance(time.Hour)
			if n := asked.take(); n > 60*60/8 {
				s.T.Errorf("%d questions in an hour about one namespace", n)
			}
			for _, verb := range everything {
				s.Allow(verb, scene.Foos, "team-7")
			}
			s.Advance(25 * time.Second)
			if n := len(s.Take()); n != 1 {
				s.T.Errorf("%d objects are handled once the right is there, want 1", n)
			}
			scene.WantWell(s)
		}},
		"one that somebody makes is that one's fault alone": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			var asked questions
			s.Operator.Scope.Namespaces = []string{"team-*"}
			for _, verb := range everything {
				s.Forbid(verb, scene.Foos, "team-3")
			}
			createTeams(s, 3)
			s.Process = s.Start(s.Operator, asked.count)
			s.Take()
			s.Create(team(3))
			s.Advance(time.Second)
			wantWatched(s, true)
			asked.take()
			s.Create(team(4))
			s.Advance(10 * time.Second)
			if n := len(s.Take()); n != 1 {
				s.T.Errorf("%d objects of the new namespace are handled, want 1", n)
			}
			if n := asked.take(); n > 3+3 {
				s.T.Errorf("%d questions when a namespace came, want those about it and a few about the other", n)
			}
			s.Delete("namespaces.v1", "", "team-3")
			s.Advance(time.Minute)
			scene.WantWell(s)
		}},
		"many without rights cost a question a second": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			var asked questions
			s.Operator.Scope.Namespaces = []string{"team-*"}
			createTeams(s, 100)
			for i := range 99 {
				s.Forbid("list", scene.Foos, fmt.Sprintf("team-%d", i))
			}
			s.Process = s.Start(s.Operator, asked.count)
			s.Advance(15 * time.Minute)
			asked.take()
			s.Advance(15 * time.Minute)
			if n := asked.take(); n > 15*60*5/4 {
				s.T.Errorf("%d questions in a quarter of an hour about 99 namespaces", n)
			}
			scene.WantUnwell(s, "and in 89 more")
		}},
		"it is degraded as a whole when nothing works": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Operator.Scope.Namespaces = []string{"team-*"}
			createTeams(s, 3)
			s.Forbid("list", scene.Foos)
			s.Launch()
			wantWatched(s, false)
			scene.WantUnwell(s, "forbidden: list in namespace team-0; list in namespace team-1; list in namespace team-2")
			s.Allow("list", scene.Foos)
			s.Advance(25 * time.Second)
			wantWatched(s, true)
			scene.WantWell(s)
		}},
		"a right that is taken away in one namespace is noticed, and when it is given again": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Operator.Scope.Namespaces = []string{"team-*"}
			createTeams(s, 5)
			s.Launch()
			s.Take()
			s.Forbid("list", scene.Foos, "team-2")
			s.Forbid("watch", scene.Foos, "team-2")
			s.CutWatches(scene.Foos)
			s.Advance(time.Minute)
			wantWatched(s, true)
			scene.WantUnwell(s, "forbidden: list, watch in namespace team-2")
			s.Update(scene.Foos, "team-1", "web", resize)
			s.Update(scene.Foos, "team-2", "web", resize)
			s.Called("sync update")
			s.Allow("list", scene.Foos, "team-2")
			s.Allow("watch", scene.Foos, "team-2")
			s.Advance(25 * time.Second)
			s.Called("sync update")
			scene.WantWell(s)
		}},
		"handlers that need all objects get an error that names those which cannot be seen": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.ConfigMaps)
				foo.OnReconcile("all", func(_ context.Context, r *dsl.Request) error {
					_, err := r.Children.All()
					j.Add(fmt.Sprint(r.Object.GetNamespace(), ": ", err))
					return nil
				})
				foo.OnReconcile("own", func(_ context.Context, r *dsl.Request) error {
					_, err := r.Children.List(scene.ConfigMaps)
					j.Add(fmt.Sprint(r.Object.GetNamespace(), " own: ", err))
					return nil
				})
			}, Play: func(s *scene.Stage) {
				s.Operator.Scope.Namespaces = []string{"team-*"}
				createTeams(s, 2)
				s.Forbid("list", scene.ConfigMaps, "team-1")
				s.Launch()
				refused := "configmaps is forbidden: the operator may not list in namespace team-1"
				s.CalledInAnyOrder("team-0 own: <nil>", "team-0: listing children: "+refused, "team-1 own: "+refused, "team-1: listing children: "+refused)
			},
		},
	})
}

// noticed is a time in which a right that is given is found.
const noticed = 12 * time.Second

// TestARightThatIsGivenBackEndsAWait holds that what waited for a right does not wait on when it is there.
func TestARightThatIsGivenBackEndsAWait(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a handler that may read its children again does so": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnReconcile("child", j.Note("child", scene.KeepsDeployment))
			}, Play: func(s *scene.Stage) {
				s.Forbid("list", scene.Deployments)
				s.Forbid("watch", scene.Deployments)
				s.Launch()
				s.Create(scene.Web)
				s.Advance(15 * time.Minute)
				s.Forget()
				s.AllowWatching(scene.Deployments)
				s.Advance(noticed)
				if s.Get(scene.Deployments, "default", "web") == nil {
					s.T.Error("there is no child")
				}
				scene.WantWell(s)
			},
		},
		"an object that may be written again is": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnCreate("made", j.Note("made")) },
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Forbid("patch", scene.Foos)
				s.Create(scene.Web)
				s.Advance(15 * time.Minute)
				scene.WantUnwell(s, "resource/"+scene.Foos+": forbidden: patch")
				s.Allow("patch", scene.Foos)
				s.Advance(noticed)
				if s.Web().GetAnnotations()[scene.StateAnnotation] == "" {
					s.T.Error("the object is not marked as handled")
				}
				scene.WantWell(s)
			},
		},
		"the same in one namespace": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnCreate("made", j.Note("made")) },
			Play: func(s *scene.Stage) {
				s.Operator.Scope.Namespaces = []string{"team-*"}
				s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: team-0}}`)
				s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: team-1}}`)
				s.Launch()
				s.Forbid("patch", scene.Foos, "team-1")
				createTeams(s, 2)
				s.Advance(15 * time.Minute)
				wantWatched(s, true)
				scene.WantUnwell(s, "forbidden: patch in namespace team-1")
				s.Allow("patch", scene.Foos, "team-1")
				s.Advance(noticed)
				if s.Get(scene.Foos, "team-1", "web").GetAnnotations()[scene.StateAnnotation] == "" {
					s.T.Error("the object is not marked as handled")
				}
				scene.WantWell(s)
			},
		},
		"in one namespace, however long another one takes to list": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnCreate("made", j.Note("made")) },
			Play: func(s *scene.Stage) {
				s.Operator.Scope.Namespaces = []string{"team-*"}
				s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: team-0}}`)
				s.Launch()
				s.Forbid("patch", scene.Foos, "team-0")
				createTeams(s, 1)
				s.Advance(15 * time.Minute)
				s.DelayNext("watch", scene.Foos, time.Hour)
				s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: team-1}}`)
				s.Advance(time.Second)
				s.Allow("patch", scene.Foos, "team-0")
				s.Advance(noticed)
				if s.Get(scene.Foos, "team-0", "web").GetAnnotations()[scene.StateAnnotation] == "" {
					s.T.Error("the object is not marked as handled")
				}
			},
		},
		"a right that only the handler knows of is tried every half minute at least": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("other", j.Note("other", scene.WritesElsewhere))
			},
			Play: func(s *scene.Stage) {
				s.Forbid("patch", scene.ConfigMaps)
				s.Launch()
				s.Create(scene.Web)
				s.Advance(15 * time.Minute)
				s.Allow("patch", scene.ConfigMaps)
				s.Advance(30 * time.Second)
				if s.Get(scene.ConfigMaps, "default", "other") == nil {
					s.T.Error("the handler's object is not there")
				}
			},
		},
		"what a policy denies is tried every half minute at least": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("other", j.Note("other", scene.WritesElsewhere))
			},
			Play: func(s *scene.Stage) {
				allow := s.Refuse(scene.ConfigMaps, func(*unstructured.Unstructured) error {
					return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
						Message: "configmaps \"other\" is forbidden: ValidatingAdmissionPolicy 'closed' with binding 'all' denied request: not now"}}
				})
				s.Launch()
				s.Create(scene.Web)
				s.Advance(15 * time.Minute)
				allow()
				s.Advance(30 * time.Second)
				if s.Get(scene.ConfigMaps, "default", "other") == nil {
					s.T.Error("the handler's object is not there")
				}
			},
		},
		"one that waits for another reason waits on": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnReconcile("late", j.Note("late", scene.RetriesAfter(2*time.Hour), scene.Succeeds))
			}, Play: func(s *scene.Stage) {
				s.Forbid("list", scene.Deployments)
				s.Launch()
				s.Create(scene.Web)
				s.Called("late create")
				s.Advance(15 * time.Minute)
				s.Allow("list", scene.Deployments)
				s.Advance(time.Minute)
				s.Called()
			},
		},
	})
}

// wantWatched checks whether the resource is said to be watched, whatever the warnings.
func wantWatched(s *scene.Stage, want bool) {
	s.T.Helper()
	s.Settle()
	for _, c := range s.Process.Engine().Ready() {
		if watched := c.Message == "" || strings.HasPrefix(c.Message, "watched, "); c.Name == "resource/"+scene.Foos && watched != want {
			s.T.Errorf("it is said that %s", c.Message)
		}
	}
}

// resize is a change that a handler looks at.
func resize(o *unstructured.Unstructured) { o.Object["spec"] = map[string]any{"size": int64(7)} }
