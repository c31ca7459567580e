// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// TestLeaseIsDeletedByHand deletes the Lease of a leader in the midst of its work, whose renewals
// hang, so that only the first sign of it can reach the leader.
func TestLeaseIsDeletedByHand(t *testing.T) {
	t.Parallel()
	// By its renewals alone the leader would not know before the test gives up.
	const slowly = "{mode: lease, leaseDuration: 2h, renewDeadline: 1h, retryPeriod: 500ms}"
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, lock, nil)
	for name, hidden := range map[string]bool{"the leader watches it": false, "the leader may not watch it": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := plane.Namespace(t)
			both := contenders(t, ns, slowly, 2)
			proxies := map[*contender]*cluster.Proxy{}
			for _, c := range both {
				proxies[c] = cluster.NewProxy(t, c.user.Config())
				if hidden {
					proxies[c].Inject(cluster.When{Match: cluster.On("watch", "leases")}, cluster.Answer(forbidden))
				}
				c.launch.Config = proxies[c].Config()
				c.start(t)
			}
			mark := plane.Mark(t)
			old, others, _ := awaitLeader(t, ns, both...)
			next := others[0]
			next.awaitStandby(t)
			calm := churn(t, ns, 20)
			proxies[old].Await(t, 40, cluster.On("write", "*"))

			never, gate := make(chan struct{}), make(chan struct{})
			proxies[old].Inject(cluster.When{Match: cluster.On("write", "leases")}, cluster.Block(never))
			proxies[next].Inject(cluster.When{Match: cluster.On("write", "leases")}, cluster.Block(gate))
			plane.Objects(leases, ns).Delete(t, lock)
			old.Await(t, "lost leadership")
			close(gate)
			awaitLeader(t, ns, next)
			proxies[next].Await(t, 20, cluster.On("write", "*"))
			calm()
			stageIn(ns).settled(t, "afterwards", 1)
			mustNotInterleave(t, plane.Writes(t, "", mark), old, next)
			writes := plane.Writes(t, next.user.Name, mark)
			for _, w := range plane.Writes(t, old.user.Name, mark) {
				if w.At.After(writes[0].At) {
					t.Errorf("%s wrote %v at %s, after %s began at %s", old.pod, w, w.At, next.pod, writes[0].At)
				}
			}
		})
	}
}
