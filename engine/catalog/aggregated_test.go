// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	if diff := cmp.Diff(want.versions, got.versions, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("versions (-client-go +ours):\n%s", diff)
	}
	if diff := cmp.Diff(want.resources, got.resources, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("resources (-client-go +ours):\n%s", diff)
	}
	broken := func(s *snapshot) sets.Set[schema.GroupVersion] { return sets.KeySet(s.broken) }
	if !broken(got).Equal(broken(want)) || len(want.broken) == 0 {
		t.Errorf("broken are %v, want %v as client-go has it", broken(got), broken(want))
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
