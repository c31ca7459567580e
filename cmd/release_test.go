// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/engine/decide/limits"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// waitingDeletions is the record of an operator that holds deletions.
const waitingDeletions = `{apiVersion: v1, kind: ConfigMap, metadata: {name: foo-deletions, namespace: handwerk-system}, data: {waiting: '
 {"settings": {"waiting": [
 {"resource": "foos.v1.example.com", "kind": "ConfigMap", "cause": "handler", "reason": "ShareExceeded", "count": 70, "all": 100, "since": "1999-12-31T23:00:00Z", "namespaces": ["shop"]},
 {"resource": "bars.v1.example.com", "kind": "Bar", "cause": "selector", "reason": "RateExceeded", "count": 3, "all": 9, "since": "1999-12-31T23:50:00Z"}]}}'}}`

// TestReleaseWritesWhatItReleases holds what the command writes and says.
func TestReleaseWritesWhatItReleases(t *testing.T) {
	until := func(minutes int) time.Time {
		return time.Date(2000, 1, 1, 0, minutes, 0, 0, time.UTC)
	}
	const foos, bars = "foos.v1.example.com: 70 of 100 ConfigMap in shop wait since 1999-12-31T23:00:00Z (cause handler)\n", "bars.v1.example.com: 3 of 9 Bar wait since 1999-12-31T23:50:00Z (cause selector)\n"
	tests := map[string]struct {
		commands []string
		nothing  bool
		want     []limits.Release
		says     string
	}{
		"all": {[]string{"release --operator foo"}, false, []limits.Release{{Until: until(10), By: "operator"}},
			bars + foos + "released until 2000-01-01T00:10:00Z: operator foo reads it within a minute\n"},
		"a resource by its plural": {[]string{"release foos --operator foo --for 1h"}, false, []limits.Release{{Resource: "foos.v1.example.com", Until: until(60), By: "operator"}},
			foos + "released until 2000-01-01T01:00:00Z"},
		"a cause": {[]string{"release --operator foo --cause selector"}, false, []limits.Release{{Cause: limits.Selector, Until: until(10), By: "operator"}}, bars + "released"},
		"one after the other": {[]string{"release foos --operator foo", "release bars --operator foo"}, false,
			[]limits.Release{{Resource: "foos.v1.example.com", Until: until(10), By: "operator"}, {Resource: "bars.v1.example.com", Until: until(10), By: "operator"}}, bars},
		"a look":                  {[]string{"release --operator foo --dry-run"}, false, nil, bars + foos},
		"what does not wait":      {[]string{"release foos --operator foo --cause namespace"}, false, nil, "no waiting deletion of operator foo matches (those of the last minute may not be recorded yet)\n"},
		"nothing that has waited": {[]string{"release --operator foo"}, true, nil, "no deletion of operator foo waits (there is no ConfigMap handwerk-system/foo-deletions)\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				c.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: handwerk-system}}`)
				c.Create(leaseOfFoo("handwerk-system"))
				if !tt.nothing {
					c.Create(waitingDeletions)
				}
				b := newBench(t)
				b.login = func(context.Context) (*rest.Config, error) { return c.Config(), nil }
				for _, args := range tt.commands {
					if code := b.execute(context.WithoutCancel(t.Context()), strings.Fields(args)); code != exitOK {
						t.Fatalf("operator %s: exit code %d: %s", args, code, b.err.String())
					}
				}
				if said := b.out.String(); !strings.Contains(said, tt.says) {
					t.Errorf("it says %q, want %q", said, tt.says)
				}
				var got limits.Contents
				if o := c.Get("configmaps.v1", "handwerk-system", "foo-deletions"); o != nil {
					data, _, _ := unstructured.NestedStringMap(o.Object, "data")
					var err error
					if got, err = limits.ParseContents(data); err != nil || len(got.Records) != 1 {
						t.Fatalf("%v: %v", data, err)
					}
				}
				if diff := cmp.Diff(tt.want, got.Releases); diff != "" {
					t.Errorf("releases (-want +got):\n%s", diff)
				}
			})
		})
	}
}
