// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package likeness

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// most is how many rows may differ.
const most = 10

// TestTheDocsListTheRowsThatDiffer compares the list in docs/testing.md with the rows.
func TestTheDocsListTheRowsThatDiffer(t *testing.T) {
	var want []string
	for _, r := range read(t) {
		if r.Differs != "" {
			want = append(want, r.Name+". "+r.Differs)
		}
	}
	if len(want) > most {
		t.Errorf("%d rows differ, more than %d", len(want), most)
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "testing.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(text), "\n## How the server differs from a real one\n")
	list, _, _ = strings.Cut(list, "\n## ")
	if !found {
		t.Fatal("the docs have no such list")
	}
	var got []string
	for _, item := range strings.Split(list, "\n* ")[1:] {
		got = append(got, strings.Join(strings.Fields(item), " "))
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))); diff != "" {
		t.Errorf("rows that differ (-table +docs):\n%s", diff)
	}
}

// TestEachPointHasARow holds that the table has rows of each point in which the server is to be true.
func TestEachPointHasARow(t *testing.T) {
	rows := read(t)
	for point, topic := range map[string]string{
		"CRDs": "crd", "custom resources": "custom", "any request": "protocol", "patches of three kinds": "patches",
		"discovery old and aggregated": "discovery", "status and scale": "subresources", "generation": "generation",
		"managed fields and server-side apply": "apply", "labels, fields and selectableFields": "selectors",
		"bookmarks and WatchList": "watch", "resourceVersion": "versions", "limit and continue": "pages", "dry run": "dryrun",
		"preconditions": "preconditions", "admission policies": "policies", "finalizers, propagation and garbage": "deletion",
		"namespaces, Events, Leases, ServiceAccounts, immutable objects": "lives", "media types": "negotiation",
	} {
		if !slices.ContainsFunc(rows, func(r row) bool { return r.topic == topic && r.Differs == "" }) {
			t.Errorf("no row is alike of %s", point)
		}
	}
}
