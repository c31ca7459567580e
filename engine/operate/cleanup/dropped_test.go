// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cleanup_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/operate/cleanup"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestACleanupGivesBackFieldsOfADroppedVersion holds that fields which a handler has patched in a version that the CRD has dropped are
// given back, although the API server refuses each apply while it has the entry of that version.
func TestACleanupGivesBackFieldsOfADroppedVersion(t *testing.T) {
	const bars = "bars.v1.example.com"
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		ctx := context.WithoutCancel(t.Context())
		c.Serve(kit.Resource{Name: foos, Kind: "Foo"}, kit.Resource{Name: bars, Kind: "Bar"})
		op := dsl.New("op")
		op.Resource(foos, func(foo *dsl.Resource) {
			foo.OnReconcile("zone", func(ctx context.Context, r *dsl.Request) error {
				_, err := r.Targets.Patch(ctx, map[string]any{"apiVersion": "example.com/v1", "kind": "Bar", "metadata": map[string]any{"name": "red", "labels": map[string]any{"zone": "1"}}}, dsl.TargetSpec{})
				return err
			})
		})
		c.Create(`{apiVersion: example.com/v1, kind: Bar, metadata: {name: red, labels: {theirs: x}}}`)
		p := c.Start(op)
		c.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}}`)
		c.Advance(time.Minute)
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
		red := c.Get(bars, "default", "red")
		entries := red.GetManagedFields()
		for i := range entries {
			if strings.HasPrefix(entries[i].Manager, "op/patch/zone/") {
				entries[i].APIVersion = "example.com/v1alpha1"
			}
		}
		red.SetManagedFields(entries)
		c.Delete(bars, "default", "red")
		c.Load(red.Object)

		clean, err := cleanup.New(ctx, op, cleanup.Settings{Config: c.Config(), Namespace: "default"})
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range clean.Remove(ctx, clean.Look(ctx), nil) {
			t.Error(err)
		}
		if diff := cmp.Diff(map[string]string{"theirs": "x"}, c.Get(bars, "default", "red").GetLabels()); diff != "" {
			t.Errorf("labels (-want +got):\n%s", diff)
		}
	})
}
