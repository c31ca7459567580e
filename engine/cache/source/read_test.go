// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

// TestWhetherACacheCanBeRead holds which reads of a feed with the namespaces team-a and team-b fail, and how.
func TestWhetherACacheCanBeRead(t *testing.T) {
	const (
		starting = "reading foos.example.com: it is starting: "
		listing  = "reading foos.example.com: its first listing is not complete"
	)
	open := func(namespaces ...string) func(*rig) {
		return func(r *rig) {
			if err := r.informers.open(r.t.Context(), namespaces, nil); err != nil {
				r.t.Fatal(err)
			}
			synctest.Wait()
		}
	}
	unlisted := func(r *rig) {
		r.client.PrependReactor("list", "foos", func(action clienttesting.Action) (bool, runtime.Object, error) {
			return action.GetNamespace() == "team-b", nil, errors.New("no answer")
		})
	}
	forbid := func(r *rig) {
		all := Problems{}
		all.AddMissing("team-b", []string{"list"}, false)
		r.health.SetAll(State{Phase: Running}, 0, all, nil)
	}
	unserved := func(r *rig) { r.health.Set(State{Phase: Unserved, Text: "it is away"}, 0) }
	tests := map[string]struct {
		do []func(*rig)
		// complete, all, here and there are the errors of Complete, Listed of all, and Readable of team-a and of team-b.
		complete, all, here, there string
	}{
		"all namespaces are listed": {do: []func(*rig){open("team-a", "team-b")}},
		"nothing is opened yet": {
			do:       []func(*rig){open()},
			complete: starting, all: "foos.example.com is starting: ", here: starting, there: starting,
		},
		"one is not listed": {do: []func(*rig){unlisted, open("team-a", "team-b")}, complete: listing, all: listing, there: listing},
		"one has no informer": {
			do:       []func(*rig){open("team-a"), unserved},
			complete: "reading foos.example.com: it is not served: it is away", all: "foos.example.com is not served: it is away", there: "reading foos.example.com: it is not served: it is away",
		},
		"one may not be listed": {
			do:       []func(*rig){open("team-a"), forbid},
			complete: "forbidden", all: "foos.example.com is forbidden: list in namespace team-b", there: "forbidden",
		},
		"nothing is known of the resource": {
			do:       []func(*rig){open(), unserved, func(r *rig) { r.unserved(false) }, func(r *rig) { r.place = place{} }},
			complete: "reading foos.example.com: it is not served: it is away", all: "foos.example.com is not served: it is away",
			here: "reading foos.example.com: it is not served: it is away", there: "reading foos.example.com: it is not served: it is away",
		},
		"there is no CRD": {
			do:  []func(*rig){open(), unserved, func(r *rig) { r.end() }},
			all: "foos.example.com is not served: it is away", here: "reading foos.example.com: it is not served: it is away", there: "reading foos.example.com: it is not served: it is away",
		},
	}
	text := func(err error) string {
		if apierrors.IsForbidden(err) {
			return "forbidden"
		} else if err != nil {
			return err.Error()
		}
		return ""
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rigged(t, Settings{Handler: handler(func(watch.Event) {})}, "a")
				synctest.Wait()
				for _, do := range tt.do {
					do(r)
				}
				got := []string{text(r.Complete()), text(r.Listed("")), text(r.Readable("team-a")), text(r.Readable("team-b"))}
				if diff := cmp.Diff([]string{tt.complete, tt.all, tt.here, tt.there}, got); diff != "" {
					t.Errorf("errors of Complete, Listed, and Readable in both (-want +got):\n%s", diff)
				}
				if err := r.Readable("elsewhere"); err != nil && len(r.informers.opened()) > 0 {
					t.Errorf("a namespace out of scope is not readable: %v", err)
				}
			})
		})
	}
}

// TestWhichCachesAreWhole holds when a cache can stand for the server in reads of a resource.
func TestWhichCachesAreWhole(t *testing.T) {
	tests := map[string]struct {
		source           watch.Source
		version, inside  string
		whole, mayChoose bool
	}{
		"whole objects":               {watch.Source{}, "v1", "team-a", true, false},
		"another version":             {watch.Source{}, "v2", "team-a", false, false},
		"a namespace without a cache": {watch.Source{}, "v1", "team-b", false, false},
		"all namespaces":              {watch.Source{}, "v1", "", false, false},
		"some fields":                 {watch.Source{Form: cached.Form{Keep: "spec"}}, "v1", "team-a", false, false},
		"some annotations":            {watch.Source{Form: cached.Form{Notes: "a"}}, "v1", "team-a", false, false},
		"the metadata":                {watch.Source{Form: cached.Form{Profile: dsl.CacheMetadata}}, "v1", "team-a", false, false},
		"objects with a label":        {watch.Source{LabelSelector: "a=b"}, "v1", "team-a", false, true},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rigged(t, Settings{Handler: handler(func(watch.Event) {})}, "a")
				synctest.Wait()
				r.informers.source = tt.source // that of the informer stays
				if got := fmt.Sprint(r.Whole(foos(tt.version).GVR, tt.inside), r.CanDeselect()); got != fmt.Sprint(tt.whole, tt.mayChoose) {
					t.Errorf("it is whole, and it chooses: %s", got)
				}
			})
		})
	}
}

func TestAReaderHasTheObjectsOfItsNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rigged(t, Settings{Handler: handler(func(watch.Event) {})}, "a", "b")
		synctest.Wait()
		for namespace, want := range map[string]int{"": 2, "team-a": 2, "team-b": 0} {
			if got := len(r.Objects(namespace)); got != want {
				t.Errorf("in namespace %q there are %d objects, want %d", namespace, got, want)
			}
		}
		if n, last := r.Stats(); n != 2 || last.IsZero() {
			t.Errorf("it counts %d objects, the last event at %v", n, last)
		}
	})
}
