// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

func TestLeaseIsTakenOver(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	stage := stageIn(ns)
	mark := plane.Mark(t)
	all := contenders(t, ns, byLease, 3)
	for _, c := range all {
		c.start(t)
	}
	first, others, _ := awaitLeader(t, ns, all...)
	for _, c := range others {
		c.awaitStandby(t)
	}
	stage.settled(t, "a", 1)
	mustNotHaveWritten(t, mark, others...)

	mark = plane.Mark(t)
	first.Kill()
	var left coordinationv1.Lease
	decode(t, plane.Objects(leases, ns).Get(t, lock), &left)
	second, others, lease := awaitLeader(t, ns, others...)
	if early := left.Spec.RenewTime.Add(leaseDuration).Sub(lease.Spec.AcquireTime.Time); early > 0 {
		t.Errorf("%s took over %s before the killed leader's lease was over", second.pod, early)
	}
	stage.foos.Patch(t, "a", `{"spec":{"replicas":2}}`)
	stage.follows(t, "a", 2)
	mustNotHaveWritten(t, mark, others...)
	if len(plane.Writes(t, second.user.Name, mark)) == 0 {
		t.Errorf("%s leads, and wrote nothing", second.pod)
	}

	holders := watchHolders(t, ns)
	if exit := second.Stop(t); exit.Code != 0 {
		t.Errorf("exit code is %d", exit.Code)
	}
	third, _, _ := awaitLeader(t, ns, others...)
	if diff := cmp.Diff([]string{second.pod, "", third.pod}, holders(third.pod)); diff != "" {
		t.Errorf("holders of the lease, which is released in the end (-want +got):\n%s", diff)
	}
	stage.foos.Patch(t, "a", `{"spec":{"replicas":1}}`)
	stage.follows(t, "a", 1)
	for _, c := range []*contender{second, third} {
		mustLogNoError(t, c.Lines, lockTimeout)
	}
}

// TestStoppedLeaderWritesNoMore stops the leader's process past its lease, in the midst of its
// work, and lets it go on when another one leads.
func TestStoppedLeaderWritesNoMore(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	all := contenders(t, ns, byLease, 3)
	proxies := map[*contender]*cluster.Proxy{}
	for _, c := range all {
		proxies[c] = cluster.NewProxy(t, c.user.Config())
		c.launch.Config = proxies[c].Config()
		c.start(t)
	}
	mark := plane.Mark(t)
	old, others, _ := awaitLeader(t, ns, all...)
	calm := churn(t, ns, 20)
	proxies[old].Await(t, 40, cluster.On("write", "*"))
	// Many workers wait for answers when the process is stopped, and have them all when it goes on.
	gate, waiting := make(chan struct{}), make(chan struct{}, 100)
	held := proxies[old].Inject(cluster.When{Match: cluster.On("write", "deployments")}, func(x *cluster.Exchange) {
		waiting <- struct{}{}
		x.Wait(gate)
		x.Forward()
	})
	for range 10 {
		<-waiting
	}
	old.Signal(t, syscall.SIGSTOP)
	held.Remove()
	close(gate)

	next, others, _ := awaitLeader(t, ns, others...)
	proxies[next].Await(t, 20, cluster.On("write", "*"))
	writes := func(r cluster.Request) bool {
		return cluster.On("write", "*")(r) || cluster.On("write", "events")(r)
	}
	before := len(proxies[old].Requests(writes))
	old.Signal(t, syscall.SIGCONT)
	old.Await(t, "lost leadership")
	old.awaitStandby(t)
	calm()
	stage := stageIn(ns)
	stage.settled(t, "afterwards", 1)

	// Where the fence closes while a request is on its way, half of it comes, and nothing of that.
	late := slices.DeleteFunc(proxies[old].Requests(writes)[before:], func(r cluster.Request) bool { return r.Torn })
	// A process that is stopped between its last look at the clock and the system call sends that one
	// request when it goes on, and no process can know.
	const unawares = 1
	if len(late) > unawares {
		t.Errorf("after it went on, %s sent:\n%+v", old.pod, late)
	}
	mustNotHaveWritten(t, mark, others...)
	torn := slices.DeleteFunc(proxies[old].Requests(writes), func(r cluster.Request) bool { return !r.Torn })
	mustNotInterleave(t, plane.Writes(t, "", mark), old, next, append(late, torn...)...)

	// It is still in the race.
	next.Kill()
	for _, c := range others {
		c.Kill()
	}
	awaitLeader(t, ns, old)
	stage.settled(t, "again", 1)
	mustLogNoError(t, old.Lines, "this process does not lead", lockTimeout) // the first is what the fence says
}

// mustNotInterleave holds that no object has writes of the old leader after one of the next, but for
// these requests.
func mustNotInterleave(t *testing.T, writes cluster.Writes, old, next *contender, but ...cluster.Request) {
	t.Helper()
	taken := map[string]cluster.Write{}
	both := 0
	before := map[string]bool{}
	for _, w := range writes {
		object := w.Resource + " " + w.Namespace + "/" + w.Name
		switch w.User {
		case old.user.Name:
			before[object] = true
			known := slices.ContainsFunc(but, func(r cluster.Request) bool {
				return r.URI == w.URI && (!r.Torn || w.Code >= http.StatusInternalServerError) // half a request is answered so
			})
			if first, is := taken[object]; is && !known {
				t.Errorf("%v of %s at %s comes after %v of %s at %s", w, old.pod, w.At, first, next.pod, first.At)
			}
		case next.user.Name:
			if _, is := taken[object]; !is {
				taken[object] = w
				if before[object] {
					both++
				}
			}
		}
	}
	if both == 0 {
		t.Error("no object was written by one leader and then by the next")
	}
}
