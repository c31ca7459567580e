// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
)

const (
	trying  = "Trying to become the leader"
	waiting = "Not the leader. Waiting."
	became  = "Became the leader."
)

// said fails when the three required words were not logged as often as given.
func (p *process) said(t *testing.T, wantTrying, wantWaiting, wantBecame int) {
	t.Helper()
	got := []int{p.logged(trying), p.logged(waiting), p.logged(became)}
	if diff := cmp.Diff([]int{wantTrying, wantWaiting, wantBecame}, got); diff != "" {
		t.Errorf("%s said trying, waiting, became (-want +got):\n%s", p.name, diff)
	}
}

func TestLifeLockBelongsToThePod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("a")
		p := c.start(t, "a", dsl.LeaderLife, nil)
		pass(time.Minute)
		p.state(t, "alone", true, true)
		p.said(t, 1, 0, 1)
		want := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "a", UID: "uid-a"}}
		if diff := cmp.Diff(want, c.stored().OwnerReferences); diff != "" {
			t.Errorf("owners (-want +got):\n%s", diff)
		}
		if err := p.ends(); err != nil {
			t.Error(err)
		}
		p.state(t, "in the end", false, false)
		if c.holder() != "a" {
			t.Error("the lock did not stay")
		}
	})
}

// TestLifeSaysWhoLeads holds that a process that waits says who leads and since when: once, and again when that changes.
func TestLifeSaysWhoLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("a", "b", "c")
		a := c.start(t, "a", dsl.LeaderLife, nil)
		since := time.Now().UTC().Format(time.RFC3339)
		pass(time.Minute)
		b := c.start(t, "b", dsl.LeaderLife, nil)
		pass(time.Hour)
		line := func(leader, since string) string {
			return `"msg"="another process leads" "lock"="ns/lock" "leader"="` + leader + `" "since"="` + since + `"`
		}
		if n, all := b.logged(line("a", since)), b.logged("another process leads"); n != 1 || all != 1 {
			t.Errorf("it is said %d times that a leads since %s, and %d times that somebody does", n, since, all)
		}
		a.dies()
		c.change(func(c *cluster) {
			holder, at := "c", metav1.NowMicro()
			c.lease.Spec.HolderIdentity, c.lease.Spec.AcquireTime, c.lease.UID = &holder, &at, "another"
			c.lease.OwnerReferences[0].Name, c.lease.OwnerReferences[0].UID = "c", "uid-c"
		})
		since = time.Now().UTC().Format(time.RFC3339)
		pass(time.Hour)
		if n, all := b.logged(line("c", since)), b.logged("another process leads"); n != 1 || all != 2 {
			t.Errorf("it is said %d times that c leads since %s, and %d times that somebody does", n, since, all)
		}
		b.stop()
	})
}

func TestLifeTakeOver(t *testing.T) {
	tests := map[string]struct {
		happens func(c *cluster) // to the leader's pod a
		takes   bool
	}{
		"the garbage collector deletes the lock with the pod": {
			happens: func(c *cluster) { delete(c.pods, "a"); c.lease = nil }, takes: true,
		},
		"the pod is gone and the lock is left": {
			happens: func(c *cluster) { delete(c.pods, "a") }, takes: true,
		},
		"another pod has the name": {
			happens: func(c *cluster) { c.pods["a"].UID = "uid-new" }, takes: true,
		},
		"the pod was evicted": {
			happens: func(c *cluster) {
				c.pods["a"].Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}
			}, takes: true,
		},
		"the pod has ended": {
			happens: func(c *cluster) { c.pods["a"].Status.Phase = corev1.PodSucceeded }, takes: true,
		},
		"the pod is being deleted": {
			happens: func(c *cluster) { now := metav1.Now(); c.pods["a"].DeletionTimestamp = &now },
		},
		"the state of the pod is unknown": {
			happens: func(c *cluster) { c.pods["a"].Status.Phase = corev1.PodUnknown },
		},
		"the process is gone, but its pod is not": {happens: func(*cluster) {}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster("a", "b")
				a := c.start(t, "a", dsl.LeaderLife, nil)
				pass(time.Second)
				b := c.start(t, "b", dsl.LeaderLife, nil)
				pass(time.Hour)
				b.state(t, "while a leads", false, false)
				b.said(t, 1, 1, 0)
				a.dies()
				c.change(test.happens)
				if !test.takes {
					pass(time.Hour)
					b.state(t, "an hour later", false, false)
					b.stop()
					return
				}
				between(t, "taking over", until(t, "b leads", b.leads), 0, 2500*time.Millisecond)
				b.state(t, "after taking over", true, true)
				b.said(t, 1, 1, 1)
				if owners := c.stored().OwnerReferences; len(owners) != 1 || owners[0].UID != "uid-b" {
					t.Errorf("the lock belongs to %v", owners)
				}
				b.stop()
			})
		})
	}
}

func TestLifeOutlastsTheContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("a", "b")
		a := c.start(t, "a", dsl.LeaderLife, nil)
		pass(time.Second)
		b := c.start(t, "b", dsl.LeaderLife, nil)
		pass(time.Minute)
		a.dies()
		pass(time.Minute)
		again := c.start(t, "a", dsl.LeaderLife, nil)
		synctest.Wait()
		again.state(t, "at once", true, true)
		again.said(t, 1, 0, 1)
		b.state(t, "after the restart", false, false)
		again.stop()
		b.stop()
	})
}

func TestLifePodOfTheSameNameIsNotTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("a")
		a := c.start(t, "a", dsl.LeaderLife, nil)
		pass(time.Second)
		a.dies()
		old := c.stored().UID
		c.addPod("a", "uid-new")
		b := c.start(t, "a", dsl.LeaderLife, nil)
		pass(3 * time.Second)
		b.state(t, "in the new pod", true, true)
		if l := c.stored(); l.UID == old || l.OwnerReferences[0].UID != "uid-new" {
			t.Errorf("the lock is %s of %v", l.UID, l.OwnerReferences)
		}
		b.stop()
	})
}

func TestLifeLockTakenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("a", "b")
		a := c.start(t, "a", dsl.LeaderLife, nil)
		pass(time.Minute)
		c.change(func(c *cluster) { c.lease.OwnerReferences[0].Name, c.lease.OwnerReferences[0].UID = "b", "uid-b" })
		between(t, "noticing", until(t, "a stops", func() bool { return !a.Held() && !a.leads() }), 0, 2500*time.Millisecond)
		if _, ending := a.terms(); !errors.Is(ending, errLost) {
			t.Errorf("lead's context ended with %v, want errLost", ending)
		}
		pass(time.Minute)
		a.state(t, "while b has the lock", false, false)
		c.change(func(c *cluster) { c.lease = nil })
		until(t, "a leads again", a.leads)
		a.said(t, 2, 1, 2)
		c.change(func(c *cluster) { c.lease = nil })
		until(t, "the deleted lock is noticed and recreated", func() bool { n, _ := a.terms(); return n == 3 })
		a.stop()
	})
}

func TestLifeLockThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("a")
		a := c.start(t, "a", dsl.LeaderLife, nil)
		pass(time.Minute)
		a.breaks(down)
		between(t, "closing the fence", until(t, "the fence closes", func() bool { return !a.Held() }), 7*time.Second, 10100*time.Millisecond)
		pass(time.Hour)
		a.state(t, "an hour later", true, false)
		if n := a.logged("reading lease ns/lock: it is down"); n != 1 {
			t.Errorf("the error was logged %d times, want once", n)
		}
		a.breaks(nil)
		between(t, "opening the fence", until(t, "the fence opens", a.Held), 0, 2500*time.Millisecond)
		if n, _ := a.terms(); n != 1 {
			t.Errorf("%d terms, want one for life", n)
		}
		a.stop()
	})
}

func TestLifeKeepsTheFenceOpenWhileItDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("a")
		a := c.start(t, "a", dsl.LeaderLife, drainFor(time.Minute))
		pass(time.Minute)
		a.stop()
		for range 599 {
			a.state(t, "while it drains", true, true)
			pass(100 * time.Millisecond)
		}
		<-a.done
	})
}

// Between a standby's look at the lock and its deletion another standby may have taken over.
func TestLifeDeletesOnlyTheLockItSaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("a", "b", "c")
		a := c.start(t, "a", dsl.LeaderLife, nil)
		pass(time.Second)
		a.dies()
		c.change(func(c *cluster) { delete(c.pods, "a") })
		deleting, goOn := make(chan struct{}), make(chan struct{})
		slow := c.startWith(t, "c", dsl.LeaderLife, nil, func(request string) error {
			if request == "delete leases" {
				close(deleting)
				<-goOn
			}
			return nil
		})
		<-deleting
		b := c.start(t, "b", dsl.LeaderLife, nil)
		until(t, "b leads", b.leads)
		close(goOn)
		pass(time.Minute)
		b.state(t, "in the end", true, true)
		slow.state(t, "in the end", false, false)
		if n, _ := slow.terms(); n != 0 {
			t.Errorf("the slow one had %d terms", n)
		}
		b.stop()
		slow.stop()
	})
}

func TestLifeTroubleWhileWaiting(t *testing.T) {
	for _, request := range []string{"get pods", "get leases", "create leases"} {
		t.Run(request, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster("a")
				a := c.startWith(t, "a", dsl.LeaderLife, nil, func(what string) error {
					if what == request {
						return errDown
					}
					return nil
				})
				pass(time.Hour)
				a.state(t, "in trouble", false, false)
				if n := a.logged("it is down"); n != 1 {
					t.Errorf("the error was logged %d times, want once: %v", n, a.lines)
				}
				a.breaks(nil)
				between(t, "winning", until(t, "it leads", a.leads), 0, 2500*time.Millisecond)
				a.stop()
			})
		})
	}
}

func TestLifeWithoutItsPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newCluster().start(t, "a", dsl.LeaderLife, nil)
		<-a.done
		if a.err == nil || !strings.Contains(a.err.Error(), "reading our own pod ns/a: ") || !strings.Contains(a.err.Error(), "POD_NAME") {
			t.Errorf("Run returned %v, want what to set", a.err)
		}
	})
}

// While the mode is changed, old and new processes see the same Lease.
func TestChangeOfModes(t *testing.T) {
	tests := map[string]func(t *testing.T, c *cluster){
		"life waits for a lease that is renewed, and takes it when it is released": func(t *testing.T, c *cluster) {
			old := c.start(t, "a", dsl.LeaderLease, nil)
			pass(time.Second)
			b := c.start(t, "b", dsl.LeaderLife, nil)
			pass(time.Hour)
			b.state(t, "while a leads", false, false)
			old.stop()
			<-old.done
			between(t, "taking over", until(t, "b leads", b.leads), 0, 2500*time.Millisecond)
			b.stop()
		},
		"life takes a lease that is not renewed": func(t *testing.T, c *cluster) {
			old := c.start(t, "a", dsl.LeaderLease, nil)
			pass(time.Second)
			b := c.start(t, "b", dsl.LeaderLife, nil)
			pass(time.Minute)
			old.dies()
			between(t, "taking over", until(t, "b leads", b.leads), leastWait, mostWait)
			b.stop()
		},
		"a lease that is renewed while life deletes it stays": func(t *testing.T, c *cluster) {
			old := c.start(t, "a", dsl.LeaderLease, nil)
			pass(time.Second)
			old.dies()
			tried := make(chan struct{}, 100)
			b := c.startWith(t, "b", dsl.LeaderLife, nil, func(request string) error {
				if request == "delete leases" {
					c.change(func(*cluster) {})
					tried <- struct{}{}
				}
				return nil
			})
			pass(time.Minute)
			b.state(t, "after the renewals", false, false)
			if len(tried) < 2 || c.holder() != "a" {
				t.Errorf("%d tries, the holder is %q", len(tried), c.holder())
			}
			b.stop()
		},
		"a lease is not taken from a leader for life": func(t *testing.T, c *cluster) {
			old := c.start(t, "a", dsl.LeaderLife, nil)
			pass(time.Second)
			b := c.start(t, "b", dsl.LeaderLease, nil)
			pass(time.Hour)
			b.state(t, "while a leads", false, false)
			old.state(t, "as before", true, true)
			old.dies()
			c.change(func(c *cluster) { delete(c.pods, "a"); c.lease = nil })
			between(t, "taking over", until(t, "b leads", b.leads), 0, 5*time.Second)
			b.stop()
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, newCluster("a", "b")) })
		})
	}
}
