// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
)

// TestObjectsAreKept follows objects through what others do to them.
func TestObjectsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t)
		s.settled("not compared")
		s.wants(hooks("a", oneBundle), policy("p"))
		s.settled("")
		if got := slices.Sorted(slices.Values(s.wrote())); !cmp.Equal(got, []string{"patch a", "patch p"}) { // each once its watch has begun
			t.Errorf("at first it wrote %v", got)
		}
		pass(time.Hour)
		if got := s.wrote(); got != nil {
			t.Errorf("without a change it wrote %v", got)
		}
		s.patch(validating, "a", `{"webhooks": []}`)
		if bundleOf(s.get(validating, "a")) != oneBundle {
			t.Error("the edit was not put back")
		}
		pass(time.Hour)
		s.patch(validating, "a", `{"metadata": {"labels": null}}`)
		if len(s.get(validating, "a").GetLabels()) != 1 {
			t.Error("the label was not put back")
		}
		if err := s.others.Resource(policies).Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if s.get(policies, "p") == nil {
			t.Error("the deletion was not put back")
		}
		if got := s.wrote(); !cmp.Equal(got, []string{"patch a", "patch a", "patch p"}) {
			t.Errorf("to put back it wrote %v", got)
		}
		s.patch(validating, "a", `{"metadata": {"annotations": {"theirs": "x"}}}`)
		s.wants(hooks("a", twoBundle), policy("p"))
		s.settled("")
		if o := s.get(validating, "a"); bundleOf(o) != twoBundle || o.GetAnnotations()["theirs"] != "x" {
			t.Errorf("the new bundle was not applied, or what others added is gone: %v", o)
		}
		if got := s.wrote(); !cmp.Equal(got, []string{"patch a"}) {
			t.Errorf("for the new bundle it wrote %v", got)
		}
		s.stop()
	})
}

// TestARestartWritesNothing holds that a new process writes only what has changed while none ran.
func TestARestartWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		admin := server.New(complete.Settings()).Admin()
		first := beginOn(t, admin)
		first.wants(hooks("a", oneBundle), policy("p"))
		first.stop()
		second := beginOn(t, admin)
		second.wants(hooks("a", oneBundle), policy("p"))
		second.settled("")
		if got := second.wrote(); got != nil {
			t.Errorf("it wrote %v", got)
		}
		second.stop()
		third, less := beginOn(t, admin), hooks("a", oneBundle)
		delete(less.Object["webhooks"].([]any)[0].(map[string]any), "timeoutSeconds")
		third.wants(less, policy("p"))
		if got := third.wrote(); !cmp.Equal(got, []string{"patch a"}) {
			t.Errorf("for a field that is not wanted any more it wrote %v", got)
		}
		third.stop()
	})
}

// TestObjectsThatAreNotWantedAreDeleted holds that they go, also those of kinds that an earlier process wanted, and no others.
func TestObjectsThatAreNotWantedAreDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		admin := server.New(complete.Settings()).Admin()
		first := beginOn(t, admin)
		other := hooks("other", oneBundle)
		other.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "others"})
		if _, err := first.others.Resource(validating).Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		first.wants(hooks("a", oneBundle), hooks("b", oneBundle), policy("p"))
		first.wants(hooks("a", oneBundle), policy("p"))
		if first.get(validating, "b") != nil || first.get(validating, "a") == nil || first.get(validating, "other") == nil {
			t.Error("b is not the only one that is gone")
		}
		first.stop()
		second := beginOn(t, admin)
		second.wants(hooks("a", oneBundle))
		second.settled("")
		if second.get(policies, "p") != nil {
			t.Error("the policy of the earlier process is there still")
		}
		second.wants()
		second.settled("")
		if second.get(validating, "a") != nil || second.get(validating, "other") == nil {
			t.Error("a is not the only one that is gone")
		}
		second.stop()
	})
}

// TestAPartOfTheListDeletesNothing holds that objects of an earlier process stay until the caller knows all that is wanted.
func TestAPartOfTheListDeletesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		admin := server.New(complete.Settings()).Admin()
		first := beginOn(t, admin)
		first.wants(hooks("a", oneBundle), policy("p"))
		first.stop()
		second := beginOn(t, admin)
		second.wantsPart(policy("q"))
		second.settled("")
		if second.get(validating, "a") == nil || second.get(policies, "p") == nil || second.get(policies, "q") == nil {
			t.Error("want that q is there, and a and p stay")
		}
		second.wants(policy("q"))
		if second.settled(""); second.get(validating, "a") != nil || second.get(policies, "p") != nil {
			t.Error("a or p is there still, and nobody wants it")
		}
		second.stop()
	})
}

// TestWhatIsWantedComesBeforeWhatIsNotGoes holds that a rule which becomes a webhook is a policy until the webhook is there, unless the server
// has no such webhooks.
func TestWhatIsWantedComesBeforeWhatIsNotGoes(t *testing.T) {
	for name, tt := range map[string]struct {
		answer error
		goes   bool
	}{
		"the account lacks a right":        {apierrors.NewForbidden(validating.GroupResource(), "a", errors.New("no role")), false},
		"the server has an internal error": {apierrors.NewInternalError(errors.New("broken")), false},
		"the server does not serve them":   {unserved("patch"), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := begin(t)
				s.wants(policy("p"))
				s.locked(func() {
					s.fault = func(q server.Request) error {
						if q.Resource == validating && q.Verb == "patch" {
							return tt.answer
						}
						return nil
					}
				})
				s.wants(hooks("a", oneBundle))
				if gone := s.get(policies, "p") == nil; gone != tt.goes {
					t.Errorf("the policy is gone: %v", gone)
				}
				s.locked(func() { s.fault = nil })
				pass(2 * time.Minute)
				if s.settled(""); s.get(policies, "p") != nil || s.get(validating, "a") == nil {
					t.Error("the webhook did not take the place of the policy")
				}
				s.stop()
			})
		})
	}
}

// TestKindsThatMayNotBeListedAreNotLookedFor holds that an account which lacks the right sends no request that is refused.
func TestKindsThatMayNotBeListedAreNotLookedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t)
		var listed []string
		s.locked(func() {
			s.mayNot = true
			s.fault = func(q server.Request) error {
				if q.Verb == "list" {
					listed = append(listed, q.Resource.Resource)
				}
				return nil
			}
		})
		s.wants(policy("p"))
		s.settled("")
		s.locked(func() {
			if listed != nil { // the wanted kind is streamed by a watch
				t.Errorf("it listed %v", listed)
			}
		})
		s.stop()
	})
}

// TestWhatOthersAddIsLeftAlone holds that a webhook which somebody has added, and which an apply does not remove, causes one write.
func TestWhatOthersAddIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t)
		s.wants(hooks("a", oneBundle))
		s.wrote()
		pass(time.Hour)
		theirs := hooks("a", twoBundle)
		theirs.Object["webhooks"].([]any)[0].(map[string]any)["name"] = "theirs.example.com"
		if _, err := s.others.Resource(validating).Apply(t.Context(), "a", theirs, metav1.ApplyOptions{FieldManager: "theirs"}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			pass(time.Hour)
			s.patch(validating, "a", `{"metadata": {"annotations": {"theirs": "`+time.Now().String()+`"}}}`)
		}
		s.settled("")
		if got := s.wrote(); len(got) > 1 {
			t.Errorf("it wrote %v", got)
		}
		s.stop()
	})
}
