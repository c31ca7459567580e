// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

const (
	crdsResource = "customresourcedefinitions.v1.apiextensions.k8s.io"
	ingresses    = "ingresses.v1.networking.k8s.io"
	namespaces   = "namespaces.v1"
	foos2        = "foos.v2.example.com"
)

// hides makes lists not show an object any more, and operators list anew.
func (s *stage) hides(resource, namespace, name string) {
	s.t.Helper()
	s.Omit(resource, namespace, name)
	s.ExpireWatches(resource)
	s.Advance(time.Minute)
}

// shows is the opposite of hides.
func (s *stage) shows(resource, namespace, name string) {
	s.t.Helper()
	s.Reveal(resource, namespace, name)
	s.ExpireWatches(resource)
	s.Advance(time.Minute)
}

// watched declares handlers for all that happens to an object, with a delete handler that holds no
// finalizer.
func watched(foo *dsl.Resource, j *journal) {
	foo.OnReconcile("sync", j.Note("sync"))
	foo.OnDelete("left", j.Note("left"), dsl.NoFinalizer())
}

// TestA404IsNoDeletion is law 7: that something is not served says nothing of its objects.
func TestA404IsNoDeletion(t *testing.T) {
	const web2 = "foos.v1.example.com"
	lives := func(s *stage) {
		s.t.Helper()
		s.Called()
		s.Wrote()
		s.size(2)
		s.Advance(time.Minute)
		s.Called("sync update")
		well(s)
		s.remove()
		s.Called("left delete")
	}
	scenarios(t, map[string]scenario{
		"one 404 to a list": {watched, func(s *stage) {
			s.begin()
			s.FailNext("watch", foos, enginetest.ErrPage)
			s.FailNext("list", foos, enginetest.ErrPage)
			s.ExpireWatches(foos)
			s.Advance(time.Minute)
			lives(s)
		}},
		"a resource that is not served for a while, whose CRD is there": {watched, func(s *stage) {
			s.begin()
			s.Withdraw(web2)
			s.Advance(10 * time.Minute)
			s.Called()
			ill(s, "resource/"+foos, "not served", "no object counts as deleted")
			s.Restore(web2)
			s.Advance(time.Minute)
			lives(s)
		}},
		"the same without the right to see CRDs": {watched, func(s *stage) {
			s.Forbid("*", crdsResource)
			s.begin()
			s.Withdraw(web2)
			s.Advance(10 * time.Minute)
			s.Called()
			ill(s, "resource/"+foos, "not served")
			s.Restore(web2)
			s.Advance(time.Minute)
			lives(s)
		}},
		"a process that starts meanwhile knows of no object, and waits": {watched, func(s *stage) {
			s.begin()
			s.Withdraw(web2)
			s.Process.Restart()
			s.Advance(time.Minute)
			s.Called()
			ill(s, "resource/"+foos, "not served")
			s.Restore(web2)
			s.Advance(time.Minute)
			s.Called("sync resume")
			well(s)
		}},
		"a resource without a CRD": {
			func(*dsl.Resource, *journal) {}, func(s *stage) {
				s.Operator = dsl.New("op")
				s.Operator.Resource(ingresses, func(r *dsl.Resource) { watched(r, &s.Journal) })
				s.Create(`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web}}`)
				s.Launch()
				s.Called("sync resume")
				s.Withdraw(ingresses)
				s.Advance(10 * time.Minute)
				s.Called()
				ill(s, "resource/"+ingresses, "not served")
				s.Restore(ingresses)
				s.Advance(time.Minute)
				s.Called()
				well(s)
				s.Delete(ingresses, "default", "web")
				s.Called("left delete")
			},
		},
		"the children's resource": {
			func(foo *dsl.Resource, j *journal) {
				foo.Owns("bars.v1.example.org")
				foo.OnReconcile("child", keepsBar)
				foo.OnChild("news", j.Note("news"))
				foo.OnUpdate("list", lists(j))
			}, func(s *stage) {
				s.Serve(enginetest.Resource{Name: "bars.v1.example.org", Kind: "Bar"})
				s.begin()
				s.Withdraw("bars.v1.example.org")
				s.Advance(10 * time.Minute)
				s.Called()
				ill(s, "child/"+foos+"/bars.v1.example.org", "not served")
				s.Restore("bars.v1.example.org")
				s.Advance(time.Minute)
				s.Called()
				well(s)
			},
		},
		"the resource of a relation": {
			func(foo *dsl.Resource, j *journal) {
				foo.Relates(dsl.Relation{Name: "bars", Resource: dsl.ResourceName{Resource: "bars", Version: "v1", Group: "example.org"}})
				foo.OnRelated("news", j.Note("news"))
			}, func(s *stage) {
				s.Serve(enginetest.Resource{Name: "bars.v1.example.org", Kind: "Bar"})
				s.Create(`{apiVersion: example.org/v1, kind: Bar, metadata: {name: web}}`)
				s.begin()
				s.Withdraw("bars.v1.example.org")
				s.Advance(10 * time.Minute)
				s.Called()
				s.Restore("bars.v1.example.org")
				s.Advance(time.Minute)
				s.Called()
				well(s)
			},
		},
	})
}

// TestDeletionsThatNobodySaw holds that an object is asked for before its delete handlers run, when
// only a listing says that it is gone.
func TestDeletionsThatNobodySaw(t *testing.T) {
	scenarios(t, map[string]scenario{
		"an object that lives is not seen off, and known when it is shown again": {watched, func(s *stage) {
			s.begin()
			s.hides(foos, "default", "web")
			s.Called()
			ill(s, "departed/"+foos, "not known to be gone: 1")
			s.shows(foos, "default", "web")
			s.Called()
			s.Wrote()
			well(s)
			s.size(2)
			s.Called("sync update")
		}},
		"one that goes while it is not shown is seen off": {watched, func(s *stage) {
			s.begin()
			s.hides(foos, "default", "web")
			s.remove()
			s.Advance(5 * time.Minute)
			s.Called("left delete")
			well(s)
		}},
		"one that may not be read waits": {watched, func(s *stage) {
			s.begin()
			s.Forbid("get", foos)
			s.gap(s.remove)
			s.Advance(time.Hour)
			s.Called()
			ill(s, "departed/"+foos, "cannot get")
			s.Allow("get", foos)
			s.Advance(5 * time.Minute)
			s.Called("left delete")
			well(s)
		}},
		"one that may be read again is seen off at once": {watched, func(s *stage) {
			s.begin()
			s.Forbid("get", foos)
			s.gap(s.remove)
			s.Advance(time.Hour)
			s.Called()
			s.Allow("get", foos)
			s.Advance(noticed)
			s.Called("left delete")
			well(s)
		}},
		"that it may not be read is known before": {watched, func(s *stage) {
			s.Forbid("get", foos)
			s.begin()
			ill(s, "resource/"+foos, "forbidden: get")
		}},
		"one that may not be read, and whose name is another's, holds nothing up": {watched, func(s *stage) {
			s.begin()
			s.Forbid("get", foos)
			s.gap(func() {
				s.remove()
				s.Create(web)
			})
			s.Called("sync create")
			s.size(2)
			s.Called("sync update")
			s.Allow("get", foos)
			s.Advance(5 * time.Minute)
			s.Called("left delete")
		}},
		"a page that is not found says nothing of the object": {watched, func(s *stage) {
			s.begin()
			end := s.FailWhile("get", foos, enginetest.ErrPage)
			s.gap(s.remove)
			s.Advance(time.Hour)
			s.Called()
			if n := end(); n == 0 || n > 30 {
				s.t.Errorf("the object was asked for %d times in an hour", n)
			}
			s.Advance(5 * time.Minute)
			s.Called("left delete")
		}},
		"one that left the selector meanwhile is seen off": {
			func(foo *dsl.Resource, j *journal) {
				foo.LabelSelector = "tier=gold"
				watched(foo, j)
			}, func(s *stage) {
				s.Launch()
				s.Create(web)
				s.set("gold", "metadata", "labels", "tier")
				s.Called("sync create")
				s.gap(func() { s.set("iron", "metadata", "labels", "tier") })
				s.Called("left delete")
				s.set("gold", "metadata", "labels", "tier")
				s.Called("sync create")
			},
		},
		"with a selector, one that lives is not seen off": {
			func(foo *dsl.Resource, j *journal) {
				foo.LabelSelector = "tier=gold"
				watched(foo, j)
			}, func(s *stage) {
				s.Launch()
				s.Create(web)
				s.set("gold", "metadata", "labels", "tier")
				s.Called("sync create")
				s.Omit(foos, "default", "web")
				s.ExpireWatches(foos)
				s.Advance(500 * time.Millisecond)
				s.shows(foos, "default", "web")
				s.Called()
			},
		},
	})
}

// TestNamespacesThatAreNotServed holds that a namespace leaves the scope by its own deletion alone.
func TestNamespacesThatAreNotServed(t *testing.T) {
	operator := func(play func(s *stage)) scenario {
		return scenario{watched, func(s *stage) {
			s.Operator.Scope.Namespaces = []string{"team-*"}
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, namespace: team-a}}`)
			s.Launch()
			s.Called("sync resume")
			play(s)
		}}
	}
	scenarios(t, map[string]scenario{
		"one 404 to the list of namespaces": operator(func(s *stage) {
			s.FailNext("watch", namespaces, enginetest.ErrPage)
			s.FailNext("list", namespaces, enginetest.ErrPage)
			s.ExpireWatches(namespaces)
			s.Advance(time.Minute)
			s.Called()
			s.Wrote()
			well(s)
		}),
		"a list without one that is there": operator(func(s *stage) {
			s.hides(namespaces, "", "team-a")
			s.Called()
			s.Delete(foos, "team-a", "web")
			s.Called("left delete")
		}),
		"one that nobody saw go": operator(func(s *stage) {
			s.HoldWatches(namespaces, foos)
			s.Delete(namespaces, "", "team-a")
			s.Advance(time.Minute)
			s.ExpireWatches(namespaces, foos)
			s.ReleaseWatches(namespaces, foos)
			s.Advance(time.Minute)
			s.Called("left delete")
			well(s)
		}),
		"no right to read namespaces any more": operator(func(s *stage) {
			s.Forbid("*", namespaces)
			s.ExpireWatches(namespaces)
			s.Advance(time.Hour)
			s.Called()
			s.Allow("*", namespaces)
			s.Advance(time.Minute)
			s.Called()
		}),
		"rights that go with the namespace keep no object": operator(func(s *stage) {
			s.HoldWatches(foos)
			s.Forbid("*", foos, "team-a")
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
	perform(t, scenario{watched, func(s *stage) {
		s.Operator.Scope.Namespaces = []string{"team-*"}
		for i := range number {
			s.Create(fmt.Sprintf(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web-%d, namespace: team-a}}`, i))
		}
		s.Launch()
		s.Forget()
		s.HoldWatches(foos) // the informer is closed before it tells of one
		s.Delete(namespaces, "", "team-a")
		s.Advance(time.Minute)
		if n := len(s.Take()); n != number {
			s.t.Errorf("%d of %d deletions were told", n, number)
		}
	}})
}

// TestAFeedThatFailsHoldsBack is law 9: requests that fail are not repeated without end.
func TestAFeedThatFailsHoldsBack(t *testing.T) {
	perform(t, scenario{watched, func(s *stage) {
		s.begin()
		s.Advance(time.Minute)
		const reviews = "selfsubjectaccessreviews.v1.authorization.k8s.io"
		counts := map[string]func() int{
			"lists": s.FailWhile("list", foos, enginetest.ErrPage), "watches": s.FailWhile("watch", foos, enginetest.ErrPage),
			"access reviews": s.FailWhile("create", reviews, nil),
		}
		s.CutWatches(foos)
		s.Advance(10 * time.Second)
		for what, end := range counts {
			if n := end(); n > 20 {
				s.t.Errorf("%d %s in ten seconds", n, what)
			}
		}
		s.Advance(time.Minute)
		s.Called()
		well(s)
	}})
}

// TestNamespacesWithTheLeastRights holds that who may list and watch namespaces, and no more, follows
// them; only one that nobody saw go stays in the scope then.
func TestNamespacesWithTheLeastRights(t *testing.T) {
	perform(t, scenario{watched, func(s *stage) {
		s.Operator.Scope.Namespaces = []string{"team-*"}
		s.Forbid("get", namespaces)
		s.Forbid("*", crdsResource)
		s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, namespace: team-a}}`)
		s.Launch()
		s.Called("sync resume")
		well(s)
		s.hides(namespaces, "", "team-a")
		s.shows(namespaces, "", "team-a")
		s.Called()
		s.Delete(namespaces, "", "team-a")
		s.Advance(time.Second)
		s.Called("left delete")
		well(s)
	}})
}
