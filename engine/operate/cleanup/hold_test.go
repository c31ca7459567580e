// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cleanup_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/operate/cleanup"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

const leases = "leases.v1.coordination.k8s.io"

// startAgain starts a process of the operator that was stopped.
func startAgain(c *kit.Cluster) *kit.Process {
	op := dsl.New("op")
	declare(op)
	return c.Start(op, func(s *engine.Settings) { s.Namespace, s.Identity = system, "pod-0" })
}

// lockHolder returns who holds the Lease; "none" if there is no Lease.
func lockHolder(c *kit.Cluster) string {
	lock := c.Get(leases, system, "op-leader")
	if lock == nil {
		return "none"
	}
	holder, _, _ := unstructured.NestedString(lock.Object, "spec", "holderIdentity")
	return holder
}

// TestNoProcessBeginsToWorkDuringACleanup holds that a process which starts while the cleaner works writes nothing before it is done.
func TestNoProcessBeginsToWorkDuringACleanup(t *testing.T) {
	scene(t, cleanup.Settings{}, nil, func(c *kit.Cluster, _ *dsl.Operator, clean *cleanup.Cleaner) {
		ctx := context.WithoutCancel(t.Context())
		hold, err := clean.Hold(ctx)
		if err != nil {
			t.Fatal(err)
		}
		p := startAgain(c)
		c.Advance(10 * time.Minute)
		if failed := clean.Remove(hold.Context, clean.Look(hold.Context), nil); len(failed) > 0 {
			t.Errorf("not done: %v", failed)
		}
		if diff := cmp.Diff([]string(nil), marked(c)); diff != "" {
			t.Errorf("marks are left (-want +got):\n%s", diff)
		}
		if writes := p.Writes(); len(writes) > 0 {
			t.Errorf("the process wrote %v", writes)
		}
		if err := hold.Release(); err != nil {
			t.Error(err)
		}
		c.Advance(time.Minute)
		if holder := lockHolder(c); holder != "pod-0" {
			t.Errorf("%q leads", holder)
		}
	})
}

// TestWhoHoldsTheLockInstead holds that a cleanup names the process that has the lock, and changes nothing.
func TestWhoHoldsTheLockInstead(t *testing.T) {
	tests := map[string]struct {
		prepare func(c *kit.Cluster)
		says    string
	}{
		"a process that renews it": {func(c *kit.Cluster) { startAgain(c); c.Advance(time.Minute) }, "taking Lease system/op-leader: pod-0 holds it"},
		"a Pod, in mode life": {func(c *kit.Cluster) {
			pod := c.Create(`{apiVersion: v1, kind: Pod, metadata: {name: op-1, namespace: system}}`)
			c.Update(leases, system, "op-leader", func(o *unstructured.Unstructured) {
				o.Object["spec"] = map[string]any{}
				_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{
					"apiVersion": "v1", "kind": "Pod", "name": "op-1", "uid": string(pod.GetUID()),
				}}, "metadata", "ownerReferences")
			})
		}, "taking Lease system/op-leader: op-1 holds it"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scene(t, cleanup.Settings{}, nil, func(c *kit.Cluster, _ *dsl.Operator, clean *cleanup.Cleaner) {
				test.prepare(c)
				before := lockHolder(c)
				hold, err := clean.Hold(context.WithoutCancel(t.Context()))
				if hold != nil || err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("the error is %v", err)
				}
				if after := lockHolder(c); after != before {
					t.Errorf("%q has the lock, and %q had it", after, before)
				}
			})
		})
	}
}

// TestACleanupEndsWhenItsLockIsLost holds that nothing more is removed when somebody takes the lock.
func TestACleanupEndsWhenItsLockIsLost(t *testing.T) {
	scene(t, cleanup.Settings{}, nil, func(c *kit.Cluster, _ *dsl.Operator, clean *cleanup.Cleaner) {
		hold, err := clean.Hold(context.WithoutCancel(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		found, before := clean.Look(hold.Context), marked(c)
		c.Update(leases, system, "op-leader", func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, "usurper", "spec", "holderIdentity")
		})
		c.Advance(10 * time.Second)
		failed := clean.Remove(hold.Context, found, nil)
		if len(failed) != 1 || !strings.Contains(failed[0].Error(), `"usurper" has taken Lease system/op-leader`) {
			t.Errorf("not done: %v", failed)
		}
		if err := hold.Release(); err != nil || lockHolder(c) != "usurper" {
			t.Errorf("%q has the lock, %v", lockHolder(c), err)
		}
		if diff := cmp.Diff(before, marked(c)); diff != "" {
			t.Errorf("marks (-want +got):\n%s", diff)
		}
	})
}

// TestALockIsFreeAfterACleanup holds that a Lease which was there is free, and that one which the cleaner has made is deleted.
func TestALockIsFreeAfterACleanup(t *testing.T) {
	for name, there := range map[string]bool{"a Lease that was there": true, "no Lease was there": false} {
		t.Run(name, func(t *testing.T) {
			scene(t, cleanup.Settings{}, nil, func(c *kit.Cluster, _ *dsl.Operator, clean *cleanup.Cleaner) {
				want := ""
				if !there {
					c.Delete(leases, system, "op-leader")
					want = "none"
				}
				hold, err := clean.Hold(context.WithoutCancel(t.Context()))
				if err != nil {
					t.Fatal(err)
				}
				if holder := lockHolder(c); !strings.HasPrefix(holder, "cleanup_") {
					t.Errorf("%q has the lock", holder)
				}
				own := names(clean.Look(hold.Context).Own)
				if found := slices.Contains(own, "Lease system/op-leader"); found != there {
					t.Errorf("the objects of the operator are %v", own)
				}
				if err := hold.Release(); err != nil || lockHolder(c) != want {
					t.Errorf("%q has the lock, want %q, %v", lockHolder(c), want, err)
				}
			})
		})
	}
}
