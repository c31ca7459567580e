// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/handwerk-dev/handwerk/engine/cache/watch"
)

func TestInformersAreThoseOfTheNamespaces(t *testing.T) {
	tests := map[string]struct {
		namespaces []string
		missing    missingVerbs
		opened     []string
		deleted    []string
	}{
		"the same namespace":             {[]string{"team-a"}, nil, []string{"team-a"}, nil},
		"one more":                       {[]string{"team-a", "team-b"}, nil, []string{"team-a", "team-b"}, nil},
		"one more that cannot be listed": {[]string{"team-a", "team-b"}, missingVerbs{"team-b": {"list"}}, []string{"team-a"}, nil},
		"one more that cannot be read":   {[]string{"team-a", "team-b"}, missingVerbs{"team-b": {"get"}}, []string{"team-a", "team-b"}, nil},
		"one that cannot be listed now":  {[]string{"team-a"}, missingVerbs{"team-a": {"watch"}}, []string{"team-a"}, nil},
		"another one":                    {[]string{"team-b"}, nil, []string{"team-b"}, []string{"a", "b"}},
		"none":                           {nil, nil, nil, []string{"a", "b"}},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var deleted []string
				r := rigged(t, Settings{Handler: handler(func(ev watch.Event) {
					if ev.Kind == watch.Deleted {
						deleted = append(deleted, ev.Key.Name)
					}
				})}, "a", "b")
				synctest.Wait()
				if err := r.informers.open(t.Context(), tt.namespaces, tt.missing); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				slices.Sort(deleted)
				if diff := cmp.Diff([][]string{tt.opened, tt.deleted}, [][]string{r.informers.opened(), deleted}, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("informers, and deletions that were delivered (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestInformersGoOverToAnotherVersion follows the informer of a namespace, whose resource is served in version v2 instead of v1.
func TestInformersGoOverToAnotherVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events []string
		r := rigged(t, Settings{Handler: handler(func(ev watch.Event) { events = append(events, fmt.Sprint(ev.Key.Name, " ", ev.Kind)) })}, "both", "old")
		r.create("v2", "both", "new")
		synctest.Wait()
		in, v2 := r.informers, foos("v2")
		version := func(h *watch.Handle) string { return h.Source().GVR.Version }
		events = nil
		if in.awaits(v2.GVR) || len(in.trailing(v2)) != 1 || len(in.trailing(foos("v1"))) > 0 {
			t.Errorf("it awaits v2, or %v are not of it", in.trailing(v2))
		}
		next := in.succession(v2)
		if _, err := in.join(t.Context(), next, "team-a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(events) > 0 || !in.awaits(v2.GVR) || version(r.Informer("team-a")) != "v1" || version(in.newest("team-a")) != "v1" {
			t.Errorf("before it goes over, the cache is that of %s, and the events are %q", version(r.Informer("team-a")), events)
		}
		r.found(v2)
		if got := version(in.newest("team-a")); got != "v2" {
			t.Errorf("once v2 is known, the newest informer is that of %s", got)
		}
		in.swap(next, []string{"team-a"})
		synctest.Wait()
		slices.Sort(events)
		if diff := cmp.Diff([]string{"both added", "new added", "old deleted"}, events); diff != "" || version(r.Informer("team-a")) != "v2" || len(in.trailing(v2)) > 0 {
			t.Errorf("afterwards, the cache is that of %s; the events (-want +got):\n%s", version(r.Informer("team-a")), diff)
		}
	})
}

// TestASuccessorIsAbandoned holds that its informers are closed when another version is served.
func TestASuccessorIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rigged(t, Settings{Handler: handler(func(watch.Event) {})}, "a")
		in := r.informers
		next := in.succession(foos("v2"))
		opened, err := in.join(t.Context(), next, "team-a")
		if err != nil {
			t.Fatal(err)
		}
		if in.abandon(foos("v2").GVR); !in.awaits(foos("v2").GVR) || in.succession(foos("v2")) != next {
			t.Error("it is abandoned for its own version")
		}
		if in.abandon(foos("v1").GVR); in.awaits(foos("v2").GVR) {
			t.Error("it is not abandoned for another version")
		}
		synctest.Wait()
		if opened.Synced() && r.Informer("team-a") == opened.Handle {
			t.Error("its informer is used")
		}
	})
}

func TestTheInformerOfAllNamespacesCoversEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rigged(t, Settings{Handler: handler(func(watch.Event) {})})
		if of, watched := r.informers.covers("team-a"); of != "team-a" || !watched {
			t.Errorf("team-a is covered by %q: %v", of, watched)
		}
		if of, watched := r.informers.covers("team-b"); watched {
			t.Errorf("team-b is covered by %q", of)
		}
		if err := r.informers.open(t.Context(), []string{""}, nil); err != nil {
			t.Fatal(err)
		}
		if of, watched := r.informers.covers("team-b"); of != "" || !watched || r.Informer("team-b") != r.Informer("") {
			t.Errorf("team-b is covered by %q: %v", of, watched)
		}
	})
}
