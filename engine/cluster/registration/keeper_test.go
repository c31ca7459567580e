// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
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

// TestKindsThatAreOpenAreLeft holds that objects of a kind which the caller does not know yet stay, also if an earlier process made them.
func TestKindsThatAreOpenAreLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		admin := server.New(complete.Settings()).Admin()
		first := beginOn(t, admin)
		first.wants(hooks("a", oneBundle), policy("p"))
		first.stop()
		second := beginOn(t, admin)
		second.wantsOpen("ValidatingWebhookConfiguration", policy("q"))
		second.settled("")
		if second.get(validating, "a") == nil || second.get(policies, "p") != nil || second.get(policies, "q") == nil {
			t.Error("want that q takes the place of p, and a stays")
		}
		second.wants(policy("q"))
		if second.settled(""); second.get(validating, "a") != nil {
			t.Error("a is there still, and nobody wants it")
		}
		second.stop()
	})
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
