// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
)

// account has the verbs that the account lacks by namespace, and counts the reviews.
type account struct {
	lacks map[string][]string
	fault error
	asked int
}

// accessOf returns the access of foos that the engine patches.
func (a *account) accessOf(in *informers, wake chan<- struct{}) *access {
	client := fake.NewClientset()
	client.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		a.asked++
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
		of := review.Spec.ResourceAttributes
		review.Status.Allowed = !slices.Contains(a.lacks[of.Namespace], of.Verb)
		return true, review, a.fault
	})
	at := &Location{place: place{served: foos("v1"), known: true}}
	in.at = at
	return newAccess(at, in, discovery.New(nil, nil, client.AuthorizationV1()), Settings{Patches: true, Log: logr.Discard()}, wake)
}

func TestVerbsThatAFeedNeeds(t *testing.T) {
	live := watch.Source{Form: cached.Form{Profile: dsl.CacheLive}}
	tests := map[string]struct {
		settings Settings
		want     []string
	}{
		"objects that are looked at":          {Settings{}, []string{"list", "watch"}},
		"objects that are patched":            {Settings{Patches: true}, []string{"list", "watch", "get", "patch"}},
		"objects whose deletion is confirmed": {Settings{Gets: true}, []string{"list", "watch", "get"}},
		"objects whose content no cache has":  {Settings{Source: live}, []string{"list", "watch", "get"}},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			a := newAccess(&Location{}, nil, nil, tt.settings, nil)
			if diff := cmp.Diff(tt.want, a.verbs); diff != "" {
				t.Errorf("verbs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMissingRightsAreAskedForWithBackOff checks the rights in two namespaces, where one lacks some, through two minutes.
func TestMissingRightsAreAskedForWithBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		with := &account{lacks: map[string][]string{"team-a": {"get", "patch"}}}
		wake := make(chan struct{}, 1)
		a := with.accessOf(&informers{}, wake)
		step := func(want missingVerbs, most int) {
			t.Helper()
			with.asked = 0
			got, err := a.check(t.Context(), []string{"team-a"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || with.asked > most {
				t.Errorf("it asked %d times, want %d at most; missing (-want +got):\n%s", with.asked, most, diff)
			}
		}
		lacks := missingVerbs{"team-a": {"get", "patch"}}
		step(lacks, 4) // each verb once
		step(lacks, 0) // it is too early
		<-time.After(2 * time.Second)
		step(lacks, 1) // the first one that is missing stands for all
		<-wake
		with.lacks = nil
		<-time.After(20 * time.Second)
		step(nil, 5)
		if len(a.lacking) > 0 {
			t.Errorf("it still lacks %v", slices.Collect(maps.Keys(a.lacking)))
		}
	})
}

// TestRightsInTheWholeClusterAreAskedForOnce holds that an account with all rights in the whole cluster is asked about it once, and
// not for each namespace, and that any other account is asked in each.
func TestRightsInTheWholeClusterAreAskedForOnce(t *testing.T) {
	teams := []string{"team-a", "team-b", "team-c"}
	for name, test := range map[string]struct {
		lacks      map[string][]string
		namespaces []string
		asked      int
		want       missingVerbs
	}{
		"all rights everywhere":          {nil, teams, 4, nil},
		"one namespace alone":            {nil, teams[:1], 4, nil},
		"a right is missing somewhere":   {map[string][]string{"": {"patch"}, "team-b": {"patch"}}, teams, 4 + 3*4, missingVerbs{"team-b": {"patch"}}},
		"rights in each namespace alone": {map[string][]string{"": {"list", "watch", "get", "patch"}}, teams, 4 + 3*4, nil},
	} {
		t.Run(name, func(t *testing.T) {
			with := &account{lacks: test.lacks}
			got, err := with.accessOf(&informers{}, make(chan struct{}, 1)).check(t.Context(), test.namespaces)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" || with.asked != test.asked {
				t.Errorf("it asked %d times, want %d; missing (-want +got):\n%s", with.asked, test.asked, diff)
			}
		})
	}
}

func TestRightsThatCannotBeChecked(t *testing.T) {
	down := errors.New("it is down")
	with := &account{fault: down}
	a := with.accessOf(&informers{}, make(chan struct{}, 1))
	if _, err := a.check(t.Context(), []string{"team-a"}); !errors.Is(err, down) {
		t.Errorf("where no informer runs, the error is %v", err)
	}
	a.informers.by = map[string]*informer{"team-b": nil}
	if missing, err := a.check(t.Context(), []string{"team-a"}); err != nil || len(missing) > 0 {
		t.Errorf("where one runs, the error is %v, and %v is missing", err, missing)
	}
}

// TestSuspicionsAreCheckedOnce holds that many refused requests cause one check, and later ones another one.
func TestSuspicionsAreCheckedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := (&account{}).accessOf(&informers{}, make(chan struct{}, 1))
		steps := []struct {
			what  string
			do    func()
			check bool
		}{
			{"the first refusal", func() {}, true},
			{"the second one", func() {}, false},
			{"one after a check", func() { _, _ = a.check(t.Context(), []string{"team-a"}) }, false},
			{"one a moment later", func() { <-time.After(askMost) }, true},
		}
		for _, step := range steps {
			step.do()
			if got := a.suspect("team-a"); got != step.check {
				t.Errorf("%s causes a check: %v", step.what, got)
			}
		}
		if !a.suspect("team-b") {
			t.Error("a refusal in another namespace causes no check")
		}
	})
}
