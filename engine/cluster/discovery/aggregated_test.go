// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
)

// TestAggregatedDiscoveryIsReadAsClientGoReadsIt holds the snapshot of the two documents against that of client-go, for the same
// server.
func TestAggregatedDiscoveryIsReadAsClientGoReadsIt(t *testing.T) {
	for name, groups := range map[string]string{
		"a usual server": aggregatedGroups,
		"a group that is there twice": `{"items":[
			{"metadata":{"name":"example.com"},"versions":[{"version":"v1","freshness":"Current","resources":[{"resource":"foos","responseKind":{"kind":"Foo"},"scope":"Namespaced","verbs":["list","watch"]}]}]},
			{"metadata":{"name":"example.com"},"versions":[{"version":"v2","freshness":"Current","resources":[{"resource":"bars","responseKind":{"kind":"Bar"},"scope":"Namespaced","verbs":["list","watch"]}]},{"version":"v3","freshness":"Stale"}]}]}`,
		"a version that is there twice": `{"items":[{"metadata":{"name":"example.com"},"versions":[
			{"version":"v1","freshness":"Current","resources":[{"resource":"foos","responseKind":{"kind":"Foo"},"verbs":["list"]}]},
			{"version":"v1","freshness":"Current","resources":[{"resource":"foos","responseKind":{"kind":"Foo"},"verbs":["watch"]}]}]}]}`,
		"no group":                       `{"items":[]}`,
		"no list":                        `{"items":null}`,
		"a group without versions":       `{"items":[{"metadata":{"name":"example.com"}},{"metadata":{"name":"other.com"},"versions":null}]}`,
		"a version without resources":    `{"items":[{"metadata":{"name":"example.com"},"versions":[{"version":"v1"},{"version":"v2","resources":[]},{"version":"v3","resources":null}]}]}`,
		"a stale version with resources": `{"items":[{"metadata":{"name":"example.com"},"versions":[{"version":"v1","freshness":"Stale","resources":[{"resource":"foos","responseKind":{"kind":"Foo"},"verbs":["list"]}]}]}]}`,
		"metadata at the end, and escapes": `{"items":[{"versions":[{"freshness":"Curr\u0065nt","resources":[
			{"verbs":["l\u0069st"],"scope":"N\u0061mespaced","shortNames":null,"responseKind":{"kind":"F\u006fo"},"resource":"f\u006fos","subresources":[{"responseKind":{"kind":"Foo"},"subresource":"st\u0061tus"}]}],"version":"v\u0031"}],"metadata":{"name":"ex\u0061mple.com"}}]}`,
		"keys that need another decoder": `{"items":[{"metad\u0061ta":{"name":"example.com"},"versions":[{"version":"v1"}]}]}`,
		"fields of null": `{"items":[{"metadata":{"name":"example.com"},"versions":[{"version":"v1","freshness":null,"resources":[
			{"resource":"foos","responseKind":null,"scope":null,"singularResource":null,"verbs":null,"subresources":null},
			{"resource":"bars","responseKind":{"kind":"Bar"},"scope":null,"singularResource":null,"verbs":null,"subresources":null}]}]}]}`,
	} {
		t.Run(name, func(t *testing.T) { readsAsClientGo(t, (&server{groups: groups}).client(t)) })
	}
}

func readsAsClientGo(t *testing.T, client *discovery.DiscoveryClient) {
	t.Helper()
	got, err := takeSnapshot(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	want := newSnapshot()
	if err := want.ask(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want.groups)), slices.Sorted(maps.Keys(got.groups))); diff != "" {
		t.Errorf("groups (-client-go +ours):\n%s", diff)
	}
	for name := range want.groups {
		want, got := want.group(name), got.group(name)
		if diff := cmp.Diff(want.versions, got.versions, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("versions of %s (-client-go +ours):\n%s", name, diff)
		}
		if diff := cmp.Diff(want.resources, got.resources, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("resources of %s (-client-go +ours):\n%s", name, diff)
		}
		if want, got := sets.KeySet(want.broken), sets.KeySet(got.broken); !got.Equal(want) {
			t.Errorf("broken versions of %s are %v, want %v as client-go has it", name, got, want)
		}
	}
}

// TestBothDocumentsAreAskedForAtOnce holds that a look at an aggregating server takes one round trip.
func TestBothDocumentsAreAskedForAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{delay: time.Second}
		begun := time.Now()
		if _, err := New(s.client(t), nil, nil).Resolve(t.Context(), name(t, "pods")); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took != s.delay {
			t.Errorf("it took %v, want %v", took, s.delay)
		}
	})
}
