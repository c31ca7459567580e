// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// conflict reports a conflict on behalf of a write, and returns a channel that is closed when that write may go on.
func (p *process) conflict(t *testing.T) <-chan struct{} {
	answer := make(chan struct{})
	go func() { defer close(answer); p.Conflict(t.Context()) }()
	synctest.Wait()
	return answer
}

// over reports whether a channel is closed.
func over(answer <-chan struct{}) bool {
	select {
	case <-answer:
		return true
	default:
		return false
	}
}

// reads counts the process's reads of the lock from here on.
func (p *process) reads() *atomic.Int32 {
	var n atomic.Int32
	p.breaks(func(request string) error {
		if request == "get leases" {
			n.Add(1)
		}
		return nil
	})
	return &n
}

func TestConflictsReadTheLockOnceInARetryPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newCluster().start(t, "a", dsl.LeaderLease, nil)
		pass(time.Minute)
		reads := p.reads()
		for range 2000 {
			p.Conflict(t.Context())
			pass(5 * time.Millisecond)
		}
		if most := int32(10*time.Second/DefaultRetryPeriod) + 1; reads.Load() == 0 || reads.Load() > most {
			t.Errorf("2000 conflicts in 10 s cost %d reads of the lock, want 1 to %d", reads.Load(), most)
		}
		p.state(t, "afterwards", true, true)
		p.stop()
	})
}

func TestAConflictHoldsUpNoOtherWrite(t *testing.T) {
	for _, mode := range []dsl.LeaderMode{dsl.LeaderLease, dsl.LeaderLife} {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newCluster("a").start(t, "a", mode, nil)
				pass(time.Minute)
				goOn := make(chan struct{})
				p.breaks(func(request string) error {
					if request == "get leases" {
						<-goOn
					}
					return nil
				})
				first, second := p.conflict(t), p.conflict(t)
				if over(first) || over(second) {
					t.Error("the writes that met a conflict went on before the lock was read")
				}
				if !p.Held() || !<-p.sure(t) {
					t.Error("another write was held up")
				}
				close(goOn)
				synctest.Wait()
				if !over(first) || !over(second) {
					t.Error("the writes that met a conflict wait still, after the lock was read")
				}
				p.stop()
			})
		})
	}
}

func TestAConflictShowsThatTheLockIsLost(t *testing.T) {
	for _, mode := range []dsl.LeaderMode{dsl.LeaderLease, dsl.LeaderLife} {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster("a")
				p := c.start(t, "a", mode, nil)
				pass(time.Minute)
				c.change(func(c *cluster) {
					other := "b"
					c.lease.Spec.HolderIdentity, c.lease.OwnerReferences = &other, nil
				})
				<-p.conflict(t)
				if p.Held() {
					t.Error("it may write after a conflict, with the lock lost")
				}
				synctest.Wait()
				if _, ending := p.terms(); !errors.Is(ending, errLost) {
					t.Errorf("the term ended with %v", ending)
				}
				p.stop()
			})
		})
	}
}

func TestAConflictWaitsNoLongerThanTheLastRenewalCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newCluster().start(t, "a", dsl.LeaderLease, nil)
		pass(time.Minute)
		p.breaks(down)
		begun := time.Now()
		<-p.conflict(t)
		between(t, "waiting", time.Since(begun), DefaultRenewDeadline-DefaultRetryPeriod-time.Second, DefaultRenewDeadline)
		if p.Held() {
			t.Error("it may write without a renewal")
		}
		p.stop()
	})
}

func TestAConflictWithoutATerm(t *testing.T) {
	none := newCluster().start(t, "a", dsl.LeaderNone, nil)
	none.Conflict(t.Context())
	none.stop()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		a := c.start(t, "a", dsl.LeaderLease, nil)
		pass(time.Second)
		b := c.start(t, "b", dsl.LeaderLease, nil)
		b.Conflict(t.Context())
		a.stop()
		b.stop()
	})
}
