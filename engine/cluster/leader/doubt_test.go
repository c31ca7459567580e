// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/handwerk-dev/handwerk/dsl"
)

// sure asks on behalf of a write, and returns a channel for the answer.
func (p *process) sure(t *testing.T) <-chan bool {
	answer := make(chan bool, 1)
	go func() { answer <- p.Sure(t.Context()) }()
	synctest.Wait()
	return answer
}

// undecided fails when there is an answer already.
func undecided(t *testing.T, answer <-chan bool) {
	t.Helper()
	select {
	case got := <-answer:
		t.Errorf("a write got %v while there is doubt", got)
	default:
	}
}

func TestDoubt(t *testing.T) {
	tests := map[string]struct {
		happens func(c *cluster, p *process) // before the sign
		goesOn  bool
	}{
		"that was unfounded": {func(*cluster, *process) {}, true},
		"when another has the lock": {func(c *cluster, _ *process) {
			c.change(func(c *cluster) {
				other := "b"
				c.lease.Spec.HolderIdentity, c.lease.OwnerReferences = &other, nil
			})
		}, false},
		"when the lock is gone": {func(c *cluster, _ *process) { c.change(func(c *cluster) { c.lease = nil }) }, false},
		"when it is released": {func(c *cluster, _ *process) {
			c.change(func(c *cluster) { c.lease.Spec.HolderIdentity, c.lease.OwnerReferences = nil, nil })
		}, false},
	}
	for _, mode := range []dsl.LeaderMode{dsl.LeaderLease, dsl.LeaderLife} {
		for title, test := range tests {
			t.Run(string(mode)+" "+title, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCluster("a")
					p := c.start(t, "a", mode, nil)
					pass(time.Minute)
					test.happens(c, p)
					goOn := make(chan struct{})
					p.breaks(func(string) error { <-goOn; return nil })
					p.Recheck()
					if p.Held() || !p.Leading() {
						t.Errorf("in doubt, Held is %v and Leading %v", p.Held(), p.Leading())
					}
					answer := p.sure(t)
					undecided(t, answer)
					p.breaks(nil)
					close(goOn)
					if got := <-answer; got != test.goesOn {
						t.Errorf("the write got %v, want %v", got, test.goesOn)
					}
					pass(10 * time.Second)
					n, ending := p.terms()
					if lost := errors.Is(ending, errLost); lost == test.goesOn || n > 2 || test.goesOn && n != 1 {
						t.Errorf("%d terms, the last context ended with %v", n, ending)
					}
					p.stop()
				})
			})
		}
	}
}

// A sign that comes while the lock is read may be about what happened after the server answered.
func TestASignWhileTheLockIsReadIsLookedAtToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		p := c.start(t, "a", dsl.LeaderLease, nil)
		pass(time.Minute)
		reads := 0
		p.breaks(func(request string) error {
			if request == "get leases" {
				if reads++; reads == 1 {
					p.Recheck()
				}
			}
			return nil
		})
		p.Recheck()
		synctest.Wait()
		if reads != 2 || !p.Held() {
			t.Errorf("the lock was read %d times, Held is %v", reads, p.Held())
		}
		p.stop()
	})
}

func TestDoubtWhileTheLockCannotBeRead(t *testing.T) {
	for _, mode := range []dsl.LeaderMode{dsl.LeaderLease, dsl.LeaderLife} {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newCluster("a").start(t, "a", mode, nil)
				pass(time.Minute)
				p.breaks(down)
				p.Recheck()
				impatient, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if p.Sure(impatient) {
					t.Error("a write without patience was let through")
				}
				answer := p.sure(t)
				undecided(t, answer)
				begun := time.Now()
				if <-answer {
					t.Error("the write was let through")
				}
				between(t, "waiting", time.Since(begun), 0, DefaultRenewDeadline)
				if n := p.logged("reading the lock failed; writes wait"); n != 1 {
					t.Errorf("it was logged %d times, want once: %v", n, p.lines)
				}
				p.breaks(nil)
				between(t, "leading again", until(t, "it leads again", p.Held), 0, 5*time.Second)
				p.stop()
			})
		})
	}
}

// A renewal proves that the lock is ours, and must not be taken for one that came too late.
func TestRenewalInDoubtLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newCluster().start(t, "a", dsl.LeaderLease, nil)
		pass(time.Minute)
		p.breaks(func(request string) error {
			if request == "get leases" {
				return errDown
			}
			return nil
		})
		p.Recheck()
		pass(5 * time.Second)
		p.state(t, "in doubt", true, false)
		p.breaks(nil)
		pass(5 * time.Second)
		p.state(t, "afterwards", true, true)
		if n, _ := p.terms(); n != 1 {
			t.Errorf("%d terms, want one", n)
		}
		p.stop()
	})
}

func TestDoubtWithoutATerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		a := c.start(t, "a", dsl.LeaderLease, nil)
		pass(time.Second)
		b := c.start(t, "b", dsl.LeaderLease, nil)
		pass(time.Second)
		b.Recheck()
		if b.Sure(t.Context()) {
			t.Error("a standby may write")
		}
		a.stop()
		until(t, "b leads", b.leads)
		b.state(t, "in its term", true, true)
		if !b.Sure(t.Context()) {
			t.Error("the leader may not write")
		}
		b.stop()
	})
	none := newCluster().start(t, "a", dsl.LeaderNone, nil)
	none.Recheck()
	if !none.Sure(t.Context()) || !none.Held() {
		t.Error("without election there is doubt")
	}
	none.stop()
}

func TestTheLockIsWatched(t *testing.T) {
	tests := map[string]struct {
		happens func(c *cluster, stream *apiwatch.FakeWatcher)
		goesOn  bool
	}{
		"it is deleted": {func(c *cluster, stream *apiwatch.FakeWatcher) {
			lock := c.stored()
			c.change(func(c *cluster) { c.lease = nil })
			stream.Delete(lock)
		}, false},
		"another takes it": {func(c *cluster, stream *apiwatch.FakeWatcher) {
			other := "b"
			c.change(func(c *cluster) { c.lease.Spec.HolderIdentity = &other })
			stream.Modify(c.stored())
		}, false},
		"it is renewed": {func(c *cluster, stream *apiwatch.FakeWatcher) { stream.Modify(c.stored()) }, true},
		"an old event": {func(c *cluster, stream *apiwatch.FakeWatcher) {
			stream.Delete(c.stored())
		}, true},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				stream := apiwatch.NewFake()
				p := c.watching(t, "a", func() (apiwatch.Interface, error) { return stream, nil })
				pass(time.Minute)
				test.happens(c, stream)
				synctest.Wait()
				if n, ending := p.terms(); errors.Is(ending, errLost) == test.goesOn || test.goesOn && (n != 1 || !p.Held()) {
					t.Errorf("%d terms, the last context ended with %v", n, ending)
				}
				p.stop()
			})
		})
	}
}

func TestTheLockMayNotBeWatched(t *testing.T) {
	tests := map[string]struct {
		err  error
		most int // tries in a minute
	}{
		"for lack of the right": {apierrors.NewForbidden(leaseResource, "lock", errors.New("no")), 1},
		"for now":               {errDown, 31},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				p := newCluster().watching(t, "a", func() (apiwatch.Interface, error) { tries++; return nil, test.err })
				pass(time.Minute)
				p.state(t, "without a watch", true, true)
				if n := p.logged(`"error"=`); n > 0 || tries < 1 || tries > test.most {
					t.Errorf("%d tries, %d errors: %v", tries, n, p.lines)
				}
				p.stop()
			})
		})
	}
}
