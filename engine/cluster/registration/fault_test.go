// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/handwerk-dev/handwerk/sandbox/server"
)

// TestFaultsAreRetriedWithBackOff holds that a fault is logged once, with advice, asks seldom, and heals.
func TestFaultsAreRetriedWithBackOff(t *testing.T) {
	forbidden := func(verbs ...string) func(server.Request) error {
		return func(q server.Request) error {
			if slices.Contains(verbs, q.Verb) && q.Resource.Resource == "validatingwebhookconfigurations" {
				return apierrors.NewForbidden(validating.GroupResource(), "a", errors.New("no role"))
			}
			return nil
		}
	}
	for name, tt := range map[string]struct {
		fault func(server.Request) error
		want  string
	}{
		"no right to apply": {forbidden("patch"), "applying ValidatingWebhookConfiguration a: the account lacks a right to validatingwebhookconfigurations.v1.admissionregistration.k8s.io; operator rbac prints the roles"},
		"no right to list":  {forbidden("list", "watch"), "watching ValidatingWebhookConfiguration a: the account lacks a right"},
		"an older server": {func(q server.Request) error {
			if q.Resource.Resource != "validatingwebhookconfigurations" {
				return nil
			}
			return unserved(q.Verb)
		}, "the API server does not serve validatingwebhookconfigurations.v1.admissionregistration.k8s.io; Kubernetes 1.16 and later do"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := begin(t)
				asked := 0
				s.locked(func() {
					s.fault = func(q server.Request) error {
						err := tt.fault(q)
						if err != nil {
							asked++
						}
						return err
					}
				})
				s.wants(hooks("a", oneBundle), policy("p"))
				pass(time.Hour)
				s.settled(tt.want)
				if s.get(policies, "p") == nil {
					t.Error("the other object was not applied")
				}
				if s.logged("not as wanted; it is retried") != 1 || s.logged(tt.want) != 1 {
					t.Errorf("logged %s", strings.Join(s.lines, "\n"))
				}
				s.locked(func() {
					if asked < 20 || asked > 500 {
						t.Errorf("it asked %d times within an hour", asked)
					}
					s.fault = nil
				})
				pass(2 * time.Minute)
				s.settled("")
				if s.logged("as wanted again") != 1 {
					t.Errorf("logged %s", strings.Join(s.lines, "\n"))
				}
				s.stop()
			})
		})
	}
}

// unserved is the answer of a server for a path that it does not have.
func unserved(verb string) error {
	err := apierrors.NewGenericServerResponse(404, verb, validating.GroupResource(), "", "404 page not found", 0, true)
	return err
}

// TestAnotherWriterIsNotFoughtAtFullSpeed holds that an object which somebody changes again and again is put back ever more seldom.
func TestAnotherWriterIsNotFoughtAtFullSpeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t)
		s.wants(hooks("a", oneBundle))
		s.wrote()
		for range 600 {
			s.patch(validating, "a", `{"webhooks": []}`)
		}
		if n := len(s.wrote()); n < 10 || n > 20 {
			t.Errorf("%d writes within ten minutes", n)
		}
		pass(longestWait)
		s.settled("")
		if bundleOf(s.get(validating, "a")) != oneBundle {
			t.Error("the object is not put back in the end")
		}
		s.stop()
	})
}
