// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package resources_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

const ingresses = "ingresses.v1.networking.k8s.io"

const namespaces = "namespaces.v1"

const foos2 = "foos.v2.example.com"

// hideFromLists makes lists not show an object any more, and operators list again.
func hideFromLists(s *scene.Stage, resource, namespace, name string) {
	s.T.Helper()
	s.Omit(resource, namespace, name)
	s.ExpireWatches(resource)
	s.Advance(time.Minute)
}

// showInLists is the opposite of hides.
func showInLists(s *scene.Stage, resource, namespace, name string) {
	s.T.Helper()
	s.Reveal(resource, namespace, name)
	s.ExpireWatches(resource)
	s.Advance(time.Minute)
}

// watched declares handlers for all that happens to an object, with a delete handler that holds no
// finalizer.
func watched(foo *dsl.Resource, j *kit.Journal) {
	foo.OnReconcile("sync", j.Note("sync"))
	foo.OnDelete("left", j.Note("left"), dsl.NoFinalizer())
}

// TestA404IsNoDeletion is law 7: that something is not served says nothing of its objects.
func TestA404IsNoDeletion(t *testing.T) {
	const web2 = "foos.v1.example.com"
	lives := func(s *scene.Stage) {
		s.T.Helper()
		s.Called()
		s.Wrote()
		s.Resize(2)
		s.Advance(time.Minute)
		s.Called("sync update")
		scene.WantWell(s)
		s.Remove()
		s.Called("left delete")
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"one 404 to a list": {Operator: watched, Play: func(s *scene.Stage) {
			s.Begin()
			s.FailNext("watch", scene.Foos, kit.ErrPage)
			s.FailNext("list", scene.Foos, kit.ErrPage)
			s.ExpireWatches(scene.Foos)
			s.Advance(time.Minute)
			lives(s)
		}},
		"a resource that is not served for a while, whose CRD is there": {Operator: watched, Play: func(s *scene.Stage) {
			s.Begin()
			s.Withdraw(web2)
			s.Advance(10 * time.Minute)
			s.Called()
			scene.WantUnwell(s, "resource/"+scene.Foos, "not served", "no object counts as deleted")
			s.Restore(web2)
			s.Advance(time.Minute)
			lives(s)
		}},
		"the same without the right to see CRDs": {Operator: watched, Play: func(s *scene.Stage) {
			s.Forbid("*", scene.CRDs)
			s.Begin()
			s.Withdraw(web2)
			s.Advance(10 * time.Minute)
			s.Called()
			scene.WantUnwell(s, "resource/"+scene.Foos, "not served")
			s.Restore(web2)
			s.Advance(time.Minute)
			lives(s)
		}},
		"a process that starts meanwhile knows of no object, and waits": {Operator: watched, Play: func(s *scene.Stage) {
			s.Begin()
			s.Withdraw(web2)
			s.Process.Restart()
			s.Advance(time.Minute)
			s.Called()
			scene.WantUnwell(s, "resource/"+scene.Foos, "not served")
			s.Restore(web2)
			s.Advance(time.Minute)
			s.Called("sync resume")
			scene.WantWell(s)
		}},
		"a resource without a CRD": {
			Operator: func(*dsl.Resource, *kit.Journal) {}, Play: func(s *scene.Stage) {
				s.Operator = dsl.New("op")
				s.Operator.Resource(ingresses, func(r *dsl.Resource) { watched(r, &s.Journal) })
				s.Create(`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web}}`)
				s.Launch()
				s.Called("sync resume")
				s.Withdraw(ingresses)
				s.Advance(10 * time.Minute)
				s.Called()
				scene.WantUnwell(s, "resource/"+ingresses, "not served")
				s.Restore(ingresses)
				s.Advance(time.Minute)
				s.Called()
				scene.WantWell(s)
				s.Delete(ingresses, "default", "web")
				s.Called("left delete")
			},
		},
		"the children's resource": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns("bars.v1.example.org")
				foo.OnReconcile("child", scene.KeepsBar)
				foo.OnChild("news", j.Note("news"))
				foo.OnUpdate("list", scene.NotesChildren(j))
			}, Play: func(s *scene.Stage) {
				s.Serve(kit.Resource{Name: "bars.v1.example.org", Kind: "Bar"})
				s.Begin()
				s.Withdraw("bars.v1.example.org")
				s.Advance(10 * time.Minute)
				s.Called()
				scene.WantUnwell(s, "child/"+scene.Foos+"/bars.v1.example.org", "not served")
				s.Restore("bars.v1.example.org")
				s.Advance(time.Minute)
				s.Called()
				scene.WantWell(s)
			},
		},
		"the resource of a relation": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Relates(dsl.Relation{Name: "bars", Resource: dsl.ResourceName{Resource: "bars", Version: "v1", Group: "example.org"}})
				foo.OnRelated("news", j.Note("news"))
			}, Play: func(s *scene.Stage) {
				s.Serve(kit.Resource{Name: "bars.v1.example.org", Kind: "Bar"})
				s.Create(`{apiVersion: example.org/v1, kind: Bar, metadata: {name: web}}`)
				s.Begin()
				s.Withdraw("bars.v1.example.org")
				s.Advance(10 * time.Minute)
				s.Called()
				s.Restore("bars.v1.example.org")
				s.Advance(time.Minute)
				s.Called()
				scene.WantWell(s)
			},
		},
	})
}

// TestAnUnseenDeletionIsConfirmed holds that an object is asked for before its delete handlers run, when
// only a listing says that it is gone.
func TestAnUnseenDeletionIsConfirmed(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"an object that lives is not released, and known when it is shown again": {Operator: watched, Play: func(s *scene.Stage) {
			s.Begin()
			hideFromLists(s, scene.Foos, "default", "web")
			s.Called()
			scene.WantUnwell(s, "departed/"+scene.Foos, "not known to be gone: 1")
			showInLists(s, scene.Foos, "default", "web")
			s.Called()
			s.Wrote()
			scene.WantWell(s)
			s.Resize(2)
			s.Called("sync update")
		}},
		"one that goes while it is not shown is released": {Operator: watched, Play: func(s *scene.Stage) {
			s.Begin()
			hideFromLists(s, scene.Foos, "default", "web")
			s.Remove()
			s.Advance(5 * time.Minute)
			s.Called("left delete")
			scene.WantWell(s)
		}},
		"one that may not be read waits": {Operator: watched, Play: func(s *scene.Stage) {
			s.Begin()
			s.Forbid("get", scene.Foos)
			happenUnseen(s, s.Remove)
			s.Advance(time.Hour)
			s.Called()
			scene.WantUnwell(s, "departed/"+scene.Foos, "cannot get")
			s.Allow("get", scene.Foos)
			s.Advance(5 * time.Minute)
			s.Called("left delete")
			scene.WantWell(s)
		}},
		"one that may be read again is released at once": {Operator: watched, Play: func(s *scene.Stage) {
			s.Begin()
			s.Forbid("get", scene.Foos)
			happenUnseen(s, s.Remove)
			s.Advance(time.Hour)
			s.Called()
			s.Allow("get", scene.Foos)
			s.Advance(noticed)
			s.Called("left delete")
			scene.WantWell(s)
		}},
		"that it may not be read is known before": {Operator: watched, Play: func(s *scene.Stage) {
			s.Forbid("get", scene.Foos)
			s.Begin()
			scene.WantUnwell(s, "resource/"+scene.Foos, "forbidden: get")
		}},
		"one that may not be read, and whose name is another's, holds nothing up": {Operator: watched, Play: func(s *scene.Stage) {
			s.Begin()
			s.Forbid("get", scene.Foos)
			happenUnseen(s, func() {
				s.Remove()
				s.Create(scene.Web)
			})
			s.Called("sync create")
			s.Resize(2)
			s.Called("sync update")
			s.Allow("get", scene.Foos)
			s.Advance(5 * time.Minute)
			s.Called("left delete")
		}},
		"a page that is not found says nothing of the object": {Operator: watched, Play: func(s *scene.Stage) {
			s.Begin()
			end := s.FailWhile("get", scene.Foos, kit.ErrPage)
			happenUnseen(s, s.Remove)
			s.Advance(time.Hour)
			s.Called()
			if n := end(); n == 0 || n > 30 {
				s.T.Errorf("the object was asked for %d times in an hour", n)
			}
			s.Advance(5 * time.Minute)
			s.Called("left delete")
		}},
		"one that left the selector meanwhile is released": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.LabelSelector = "tier=gold"
				watched(foo, j)
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Set("gold", "metadata", "labels", "tier")
				s.Called("sync create")
				happenUnseen(s, func() { s.Set("iron", "metadata", "labels", "tier") })
				s.Called("left delete")
				s.Set("gold", "metadata", "labels", "tier")
				s.Called("sync create")
			},
		},
		"with a selector, one that lives is not released": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.LabelSelector = "tier=gold"
				watched(foo, j)
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Set("gold", "metadata", "labels", "tier")
				s.Called("sync create")
				s.Omit(scene.Foos, "default", "web")
				s.ExpireWatches(scene.Foos)
				s.Advance(500 * time.Millisecond)
				showInLists(s, scene.Foos, "default", "web")
				s.Called()
			},
		},
	})
}

// TestANamespaceLeavesTheScopeByItsDeletionAlone holds that a namespace leaves the scope by its own deletion alone.
func TestANamespaceLeavesTheScopeByItsDeletionAlone(t *testing.T) {
	operator := func(play func(s *scene.Stage)) scene.Scenario {
		return scene.Scenario{Operator: watched, Play: func(s *scene.Stage) {
			s.Operator.Scope.Namespaces = []string{"team-*"}
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, namespace: team-a}}`)
			s.Launch()
			s.Called("sync resume")
			play(s)
		}}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"one 404 to the list of namespaces": operator(func(s *scene.Stage) {
			s.FailNext("watch", namespaces, kit.ErrPage)
			s.FailNext("list", namespaces, kit.ErrPage)
			s.ExpireWatches(namespaces)
			s.Advance(time.Minute)
			s.Called()
			s.Wrote()
			scene.WantWell(s)
		}),
		"a list without one that is there": operator(func(s *scene.Stage) {
			hideFromLists(s, namespaces, "", "team-a")
			s.Called()
			s.Delete(scene.Foos, "team-a", "web")
			s.Called("left delete")
		}),
		"one whose deletion was missed": operator(func(s *scene.Stage) {
			s.HoldWatches(namespaces, scene.Foos)
			s.Delete(namespaces, "", "team-a")
			s.Advance(time.Minute)
			s.ExpireWatches(namespaces, scene.Foos)
			s.ReleaseWatches(namespaces, scene.Foos)
			s.Advance(time.Minute)
			s.Called("left delete")
			scene.WantWell(s)
		}),
		"no right to read namespaces any more": operator(func(s *scene.Stage) {
			s.Forbid("*", namespaces)
			s.ExpireWatches(namespaces)
			s.Advance(time.Hour)
			s.Called()
			s.Allow("*", namespaces)
			s.Advance(time.Minute)
			s.Called()
		}),
		"rights that go with the namespace keep no object": operator(func(s *scene.Stage) {
			s.HoldWatches(scene.Foos)
			s.Forbid("*", scene.Foos, "team-a")
			s.Delete(namespaces, "", "team-a")
			s.Advance(time.Minute)
			s.Called("left delete")
		}),
	})
}

// TestDeletionsOfANamespaceAreComplete holds that no deletion is lost when the informer of a
// namespace is closed right after its objects went.
func TestDeletionsOfANamespaceAreComplete(t *testing.T) {
	const number = 30
	scene.Play(t, scene.Scenario{Operator: watched, Play: func(s *scene.Stage) {
		s.Operator.Scope.Namespaces = []string{"team-*"}
		s.Operator.Settings.Limits.Deletions = dsl.DeletionLimits{PerMinute: dsl.Unlimited, Share: dsl.Unlimited}
		for i := range number {
			s.Create(fmt.Sprintf(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web-%d, namespace: team-a}}`, i))
		}
		s.Launch()
		s.Forget()
		s.HoldWatches(scene.Foos) // the informer is closed before it delivers one
		s.Delete(namespaces, "", "team-a")
		s.Advance(time.Minute)
		if n := len(s.Take()); n != number {
			s.T.Errorf("%d of %d deletions were reported", n, number)
		}
	}})
}

// TestAFeedThatFailsBacksOff is law 9: requests that fail are not repeated without end.
func TestAFeedThatFailsBacksOff(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: watched, Play: func(s *scene.Stage) {
		s.Begin()
		s.Advance(time.Minute)
		const reviews = "selfsubjectaccessreviews.v1.authorization.k8s.io"
		counts := map[string]func() int{
			"lists": s.FailWhile("list", scene.Foos, kit.ErrPage), "watches": s.FailWhile("watch", scene.Foos, kit.ErrPage),
			"access reviews": s.FailWhile("create", reviews, nil),
		}
		s.CutWatches(scene.Foos)
		s.Advance(10 * time.Second)
		for what, end := range counts {
			if n := end(); n > 20 {
				s.T.Errorf("%d %s in ten seconds", n, what)
			}
		}
		s.Advance(time.Minute)
		s.Called()
		scene.WantWell(s)
	}})
}

// TestNamespacesAreFollowedWithRightsToListAndWatchAlone holds that who may list and watch namespaces, and no more, follows
// them; only one whose deletion was missed stays in the scope then.
func TestNamespacesAreFollowedWithRightsToListAndWatchAlone(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: watched, Play: func(s *scene.Stage) {
		s.Operator.Scope.Namespaces = []string{"team-*"}
		s.Forbid("get", namespaces)
		s.Forbid("*", scene.CRDs)
		s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, namespace: team-a}}`)
		s.Launch()
		s.Called("sync resume")
		scene.WantWell(s)
		hideFromLists(s, namespaces, "", "team-a")
		showInLists(s, namespaces, "", "team-a")
		s.Called()
		s.Delete(namespaces, "", "team-a")
		s.Advance(time.Second)
		s.Called("left delete")
		scene.WantWell(s)
	}})
}
