// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

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
)

// questions counts the reviews of access that an operator asks for.
type questions struct {
	mu sync.Mutex
	n  int
}

// count is for Cluster.Start.
func (q *questions) count(s *engine.Settings) {
	s.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
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

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// teams makes namespaces with an object each.
func teams(s *stage, n int) {
	for i := range n {
		s.Create(team(i))
	}
}

func team(i int) string {
	return fmt.Sprintf(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, namespace: team-%d}}`, i)
}

// TestRightsInOneNamespace is law 9: what is missing in one namespace is a fault of that one.
func TestRightsInOneNamespace(t *testing.T) {
	everything := []string{"list", "watch", "patch"}
	scenarios(t, map[string]scenario{
		"one without rights among sixty leaves the others alone, and costs a question now and then": {level, func(s *stage) {
			var asked questions
			s.Operator.Scope.Namespaces = []string{"team-*"}
			teams(s, 60)
			for _, verb := range everything {
				s.Forbid(verb, foos, "team-7")
			}
			s.Process = s.Start(s.Operator, asked.count)
			if n := len(s.Take()); n != 59 {
				s.t.Errorf("%d objects are handled, want 59", n)
			}
			ill(s, "resource/"+foos, "forbidden: list, watch in namespace team-7")
			up(s, true)
			asked.take()
			s.Advance(time.Hour)
			if n := asked.take(); n > 60*60/8 {
				s.t.Errorf("%d questions in an hour about one namespace", n)
			}
			for _, verb := range everything {
				s.Allow(verb, foos, "team-7")
			}
			s.Advance(25 * time.Second)
			if n := len(s.Take()); n != 1 {
				s.t.Errorf("%d objects are handled once the right is there, want 1", n)
			}
			well(s)
		}},
		"one that somebody makes is that one's fault alone": {level, func(s *stage) {
			var asked questions
			s.Operator.Scope.Namespaces = []string{"team-*"}
			for _, verb := range everything {
				s.Forbid(verb, foos, "team-3")
			}
			teams(s, 3)
			s.Process = s.Start(s.Operator, asked.count)
			s.Take()
			s.Create(team(3))
			s.Advance(time.Second)
			up(s, true)
			asked.take()
			s.Create(team(4))
			s.Advance(10 * time.Second)
			if n := len(s.Take()); n != 1 {
				s.t.Errorf("%d objects of the new namespace are handled, want 1", n)
			}
			if n := asked.take(); n > 3+3 {
				s.t.Errorf("%d questions when a namespace came, want those about it and a few about the other", n)
			}
			s.Delete("namespaces.v1", "", "team-3")
			s.Advance(time.Minute)
			well(s)
		}},
		"many without rights cost a question a second": {level, func(s *stage) {
			var asked questions
			s.Operator.Scope.Namespaces = []string{"team-*"}
			teams(s, 100)
			for i := range 99 {
				s.Forbid("list", foos, fmt.Sprintf("team-%d", i))
			}
			s.Process = s.Start(s.Operator, asked.count)
			s.Advance(15 * time.Minute)
			asked.take()
			s.Advance(15 * time.Minute)
			if n := asked.take(); n > 15*60*5/4 {
				s.t.Errorf("%d questions in a quarter of an hour about 99 namespaces", n)
			}
			ill(s, "and in 89 more")
		}},
		"it is degraded as a whole when nothing works": {level, func(s *stage) {
			s.Operator.Scope.Namespaces = []string{"team-*"}
			teams(s, 3)
			s.Forbid("list", foos)
			s.Launch()
			up(s, false)
			ill(s, "forbidden: list in namespace team-0; list in namespace team-1; list in namespace team-2")
			s.Allow("list", foos)
			s.Advance(25 * time.Second)
			up(s, true)
			well(s)
		}},
		"a right that is taken away in one namespace is noticed, and when it is given again": {level, func(s *stage) {
			s.Operator.Scope.Namespaces = []string{"team-*"}
			teams(s, 5)
			s.Launch()
			s.Take()
			s.Forbid("list", foos, "team-2")
			s.Forbid("watch", foos, "team-2")
			s.CutWatches(foos)
			s.Advance(time.Minute)
			up(s, true)
			ill(s, "forbidden: list, watch in namespace team-2")
			s.Update(foos, "team-1", "web", resized)
			s.Update(foos, "team-2", "web", resized)
			s.Called("sync update")
			s.Allow("list", foos, "team-2")
			s.Allow("watch", foos, "team-2")
			s.Advance(25 * time.Second)
			s.Called("sync update")
			well(s)
		}},
		"handlers that need all objects are told which cannot be seen": {
			func(foo *dsl.Resource, j *journal) {
				foo.Owns(configMaps)
				foo.OnReconcile("all", func(_ context.Context, r *dsl.Request) error {
					_, err := r.Children.All()
					j.Add(fmt.Sprint(r.Object.GetNamespace(), ": ", err))
					return nil
				})
				foo.OnReconcile("own", func(_ context.Context, r *dsl.Request) error {
					_, err := r.Children.List(configMaps)
					j.Add(fmt.Sprint(r.Object.GetNamespace(), " own: ", err))
					return nil
				})
			}, func(s *stage) {
				s.Operator.Scope.Namespaces = []string{"team-*"}
				teams(s, 2)
				s.Forbid("list", configMaps, "team-1")
				s.Launch()
				refused := "configmaps is forbidden: the operator may not list in namespace team-1"
				s.CalledInAnyOrder("team-0 own: <nil>", "team-0: listing children: "+refused, "team-1 own: "+refused, "team-1: listing children: "+refused)
			},
		},
	})
}

// noticed is a time in which a right that is given is found.
const noticed = 12 * time.Second

// TestRightsGivenBack holds that what waited for a right does not wait on when it is there.
func TestRightsGivenBack(t *testing.T) {
	scenarios(t, map[string]scenario{
		"a handler that may read its children again does so": {
			func(foo *dsl.Resource, j *journal) {
				foo.Owns(deployments)
				foo.OnReconcile("child", j.Note("child", keepsChild))
			}, func(s *stage) {
				s.Forbid("list", deployments)
				s.Forbid("watch", deployments)
				s.Launch()
				s.Create(web)
				s.Advance(15 * time.Minute)
				s.Forget()
				s.seen(deployments)
				s.Advance(noticed)
				if s.Get(deployments, "default", "web") == nil {
					s.t.Error("there is no child")
				}
				well(s)
			},
		},
		"an object that may be written again is": {
			func(foo *dsl.Resource, j *journal) { foo.OnCreate("made", j.Note("made")) },
			func(s *stage) {
				s.Launch()
				s.Forbid("patch", foos)
				s.Create(web)
				s.Advance(15 * time.Minute)
				ill(s, "resource/"+foos+": forbidden: patch")
				s.Allow("patch", foos)
				s.Advance(noticed)
				if s.web().GetAnnotations()[state] == "" {
					s.t.Error("the object is not marked as handled")
				}
				well(s)
			},
		},
		"the same in one namespace": {
			func(foo *dsl.Resource, j *journal) { foo.OnCreate("made", j.Note("made")) },
			func(s *stage) {
				s.Operator.Scope.Namespaces = []string{"team-*"}
				s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: team-0}}`)
				s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: team-1}}`)
				s.Launch()
				s.Forbid("patch", foos, "team-1")
				teams(s, 2)
				s.Advance(15 * time.Minute)
				up(s, true)
				ill(s, "forbidden: patch in namespace team-1")
				s.Allow("patch", foos, "team-1")
				s.Advance(noticed)
				if s.Get(foos, "team-1", "web").GetAnnotations()[state] == "" {
					s.t.Error("the object is not marked as handled")
				}
				well(s)
			},
		},
		"in one namespace, however long another one takes to list": {
			func(foo *dsl.Resource, j *journal) { foo.OnCreate("made", j.Note("made")) },
			func(s *stage) {
				s.Operator.Scope.Namespaces = []string{"team-*"}
				s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: team-0}}`)
				s.Launch()
				s.Forbid("patch", foos, "team-0")
				teams(s, 1)
				s.Advance(15 * time.Minute)
				s.DelayNext("watch", foos, time.Hour)
				s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: team-1}}`)
				s.Advance(time.Second)
				s.Allow("patch", foos, "team-0")
				s.Advance(noticed)
				if s.Get(foos, "team-0", "web").GetAnnotations()[state] == "" {
					s.t.Error("the object is not marked as handled")
				}
			},
		},
		"a right that only the handler knows of is tried every half minute at least": {
			func(foo *dsl.Resource, j *journal) { foo.OnCreate("other", j.Note("other", writesElsewhere)) },
			func(s *stage) {
				s.Forbid("patch", configMaps)
				s.Launch()
				s.Create(web)
				s.Advance(15 * time.Minute)
				s.Allow("patch", configMaps)
				s.Advance(30 * time.Second)
				if s.Get(configMaps, "default", "other") == nil {
					s.t.Error("the handler's object is not there")
				}
			},
		},
		"what a policy denies is tried every half minute at least": {
			func(foo *dsl.Resource, j *journal) { foo.OnCreate("other", j.Note("other", writesElsewhere)) },
			func(s *stage) {
				allow := s.Refuse(configMaps, func(*unstructured.Unstructured) error {
					return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
						Message: "configmaps \"other\" is forbidden: ValidatingAdmissionPolicy 'closed' with binding 'all' denied request: not now"}}
				})
				s.Launch()
				s.Create(web)
				s.Advance(15 * time.Minute)
				allow()
				s.Advance(30 * time.Second)
				if s.Get(configMaps, "default", "other") == nil {
					s.t.Error("the handler's object is not there")
				}
			},
		},
		"one that waits for another reason waits on": {
			func(foo *dsl.Resource, j *journal) {
				foo.Owns(deployments)
				foo.OnReconcile("late", j.Note("late", temporary(2*time.Hour), succeeds))
			}, func(s *stage) {
				s.Forbid("list", deployments)
				s.Launch()
				s.Create(web)
				s.Called("late create")
				s.Advance(15 * time.Minute)
				s.Allow("list", deployments)
				s.Advance(time.Minute)
				s.Called()
			},
		},
	})
}

// up checks whether the resource is said to be watched, whatever the warnings.
func up(s *stage, want bool) {
	s.t.Helper()
	s.Settle()
	for _, c := range s.Process.Engine().Ready() {
		if watched := c.Message == "" || strings.HasPrefix(c.Message, "watched, "); c.Name == "resource/"+foos && watched != want {
			s.t.Errorf("it is said that %s", c.Message)
		}
	}
}

// resized is a change that a handler looks at.
func resized(o *unstructured.Unstructured) { o.Object["spec"] = map[string]any{"size": int64(7)} }
