// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestAnAnswerFromBeforeDiscoveryServesTheFirstCheck holds that the first check takes what was asked ahead, where that is about the
// resource that is served and not old, and that each later check asks again.
func TestAnAnswerFromBeforeDiscoveryServesTheFirstCheck(t *testing.T) {
	const all = 4 // the verbs
	for name, test := range map[string]struct {
		declared string
		after    time.Duration
		// ahead, and first, are how often was asked ahead, and by the first check.
		ahead, first int
	}{
		"the version that is served":                    {"foos.v1.example.com", time.Second, all, 0},
		"another version":                               {"foos.v2.example.com", time.Second, all, all},
		"a name without a version is not asked about":   {"foos.example.com", time.Second, 0, all},
		"an old answer, as of a CRD that came later on": {"foos.v1.example.com", time.Hour, all, all},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				with := &account{lacks: map[string][]string{"": {"patch"}}}
				a := with.accessOf(&informers{}, make(chan struct{}, 1))
				var err error
				if a.at.name, err = dsl.ParseResourceName(test.declared); err != nil {
					t.Fatal(err)
				}
				defer a.foresee(t.Context(), extent{Scope: NewScope(ScopeSettings{})})()
				<-time.After(test.after)
				synctest.Wait()
				step := func(want missingVerbs, asked int) {
					t.Helper()
					with.asked = 0
					got, err := a.check(t.Context(), []string{""})
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || with.asked != asked {
						t.Errorf("it asked %d times, want %d; missing (-want +got):\n%s", with.asked, asked, diff)
					}
				}
				if with.asked != test.ahead {
					t.Errorf("it asked %d times ahead, want %d", with.asked, test.ahead)
				}
				step(missingVerbs{"": {"patch"}}, test.first)
				with.lacks = nil
				<-time.After(2 * time.Second)
				step(nil, 1+all)
			})
		})
	}
}
