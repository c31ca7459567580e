// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/util/sets"
)

// TestAggregatedDiscoveryIsReadAsClientGoReadsIt holds the snapshot of the two documents against that of client-go, for the same
// server.
func TestAggregatedDiscoveryIsReadAsClientGoReadsIt(t *testing.T) {
	client := (&server{}).client(t)
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
