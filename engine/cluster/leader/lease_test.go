// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/handwerk-dev/handwerk/dsl"
)

func TestNew(t *testing.T) {
	tests := map[string]struct {
		change  func(*Settings)
		wantErr string
	}{
		"the defaults are fine":         {change: func(*Settings) {}},
		"mode none needs nothing":       {change: func(s *Settings) { *s = Settings{} }},
		"mode life with a pod is fine":  {change: func(s *Settings) { s.Mode, s.PodName = dsl.LeaderLife, "pod" }},
		"an unknown mode":               {change: func(s *Settings) { s.Mode = "best" }, wantErr: `unknown mode "best" (want none, lease or life)`},
		"no namespace":                  {change: func(s *Settings) { s.Namespace = "" }, wantErr: "set leaderElection.namespace"},
		"no name":                       {change: func(s *Settings) { s.Name = "" }, wantErr: "set leaderElection.name"},
		"no client":                     {change: func(s *Settings) { s.Client = nil }, wantErr: "no client"},
		"mode life without a pod":       {change: func(s *Settings) { s.Mode = dsl.LeaderLife }, wantErr: "set POD_NAME"},
		"a deadline that comes at once": {change: func(s *Settings) { s.RenewDeadline = 2 * time.Second }, wantErr: "the renew deadline (2s) must be more than"},
		"a lease that ends before the deadline": {
			change:  func(s *Settings) { s.LeaseDuration = 10 * time.Second },
			wantErr: "the lease duration (10s, in whole seconds) must be more than the renew deadline (10s)",
		},
		"a lease whose seconds are fewer than its duration": {
			change:  func(s *Settings) { s.RenewDeadline, s.LeaseDuration = 10200*time.Millisecond, 10900*time.Millisecond },
			wantErr: "the lease duration (10s, in whole seconds)",
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			set := Settings{LeaderElection: dsl.LeaderElection{Mode: dsl.LeaderLease, Name: "lock", Namespace: "ns"}, Client: clientset{fake.NewClientset()}}
			test.change(&set)
			e, err := New(set)
			if (err == nil) != (test.wantErr == "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("error is %v, want %q", err, test.wantErr)
			}
			if err == nil && e.Held() != (set.Mode == "") {
				t.Errorf("Held is %v before Run", e.Held())
			}
		})
	}
}

func TestIdentity(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Skip(err)
	}
	seen := map[string]bool{}
	for range 2 {
		e, err := New(Settings{LeaderElection: dsl.LeaderElection{Mode: dsl.LeaderLease, Name: "lock", Namespace: "ns"}, Client: clientset{fake.NewClientset()}})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(e.set.Identity, host+"_") || seen[e.set.Identity] {
			t.Errorf("identity is %q, want the host and something unique", e.set.Identity)
		}
		seen[e.set.Identity] = true
	}
}

func TestModeNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		a, b := c.start(t, "a", dsl.LeaderNone, nil), c.start(t, "b", dsl.LeaderNone, nil)
		pass(time.Minute)
		a.state(t, "later", true, true)
		b.state(t, "later", true, true)
		if err := a.ends(); err != nil {
			t.Errorf("Run returned %v at its context's end", err)
		}
		b.stop()
	})
	synctest.Test(t, func(t *testing.T) {
		p := newCluster().start(t, "a", dsl.LeaderNone, func(context.Context) error { return errDown })
		<-p.done
		if !errors.Is(p.err, errDown) {
			t.Errorf("Run returned %v, want what lead returned", p.err)
		}
	})
}

func TestOneLeadsAndTheOthersWait(t *testing.T) {
	for _, mode := range []dsl.LeaderMode{dsl.LeaderLease, dsl.LeaderLife} {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster("a", "b", "c")
				all := []*process{c.start(t, "a", mode, nil), c.start(t, "b", mode, nil), c.start(t, "c", mode, nil)}
				for range 600 {
					pass(100 * time.Millisecond)
					leaders := 0
					for _, p := range all {
						p.state(t, "while all is well", p.name == c.holder(), p.name == c.holder())
						if p.leads() {
							leaders++
						}
					}
					if leaders != 1 {
						t.Fatalf("%d processes lead", leaders)
					}
				}
				for _, p := range all {
					if n, _ := p.terms(); n > 1 || p.name == c.holder() && n != 1 {
						t.Errorf("%s had %d terms", p.name, n)
					}
					p.stop()
				}
			})
		})
	}
}

// How long it takes until a standby takes over from a leader that died: its last renewal was up to
// 2 s before, the standby looks each 2 to 4.4 s, saw it at one look, and counts from then on.
const (
	leastWait = DefaultLeaseDuration - 2*time.Second
	mostWait  = DefaultLeaseDuration + 2*4400*time.Millisecond + 100*time.Millisecond
)

func TestTakeOverAfterDeath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		a := c.start(t, "a", dsl.LeaderLease, nil)
		pass(time.Second)
		b := c.start(t, "b", dsl.LeaderLease, nil)
		pass(time.Minute)
		a.dies()
		took := until(t, "b leads", b.leads)
		between(t, "taking over", took, leastWait, mostWait)
		b.state(t, "after taking over", true, true)
		b.stop()
	})
}

func TestReleaseComesAfterTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		const drain = time.Minute // longer than the lease lasts
		a := c.start(t, "a", dsl.LeaderLease, drainFor(drain))
		pass(time.Second)
		b := c.start(t, "b", dsl.LeaderLease, nil)
		pass(time.Second)
		a.stop()
		for range 599 {
			a.state(t, "while it drains", true, true)
			b.state(t, "while a drains", false, false)
			pass(100 * time.Millisecond)
		}
		<-a.done
		synctest.Wait()
		a.state(t, "in the end", false, false)
		if _, ending := a.terms(); a.err != nil || !errors.Is(ending, context.Canceled) {
			t.Errorf("Run returned %v, lead's context ended with %v", a.err, ending)
		}
		if c.holder() == "a" {
			t.Error("the lease is not released")
		}
		between(t, "taking over", until(t, "b leads", b.leads), 0, 4500*time.Millisecond)
		if n := a.logged(`"error"=`); n > 0 {
			t.Errorf("an orderly end logs %d errors: %v", n, a.lines)
		}
		b.stop()
	})
}

func TestWorkThatEndsByItself(t *testing.T) {
	for title, result := range map[string]error{"with an error": errDown, "without": nil} {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				p := c.start(t, "a", dsl.LeaderLease, func(context.Context) error {
					<-time.After(20 * time.Second)
					return result
				})
				<-p.done
				p.state(t, "in the end", false, false)
				if n, _ := p.terms(); !errors.Is(p.err, result) || c.holder() != "" || n != 1 {
					t.Errorf("Run returned %v after %d terms, the holder is %q", p.err, n, c.holder())
				}
			})
		})
	}
}

func TestLossAndReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		const drain = 30 * time.Second
		var heldAtEnd []bool
		var p *process
		p = c.start(t, "a", dsl.LeaderLease, func(ctx context.Context) error {
			<-ctx.Done()
			heldAtEnd = append(heldAtEnd, p.Held())
			<-time.After(drain)
			return ctx.Err()
		})
		pass(time.Minute)
		p.breaks(func(request string) error {
			if strings.HasPrefix(request, "update") {
				return errDown
			}
			return nil
		})
		took := until(t, "the fence closes", func() bool { return !p.Held() })
		// The last renewal was up to a retry period ago.
		between(t, "closing the fence", took, 8*time.Second, 10100*time.Millisecond)
		if len(heldAtEnd) != 1 || heldAtEnd[0] || p.Leading() {
			t.Errorf("when lead's context ended Held was %v, want one time false", heldAtEnd)
		}
		p.breaks(nil)
		pass(drain - time.Second)
		if n, _ := p.terms(); n != 1 {
			t.Error("a new term began before the old one's work had ended")
		}
		again := func() bool { n, _ := p.terms(); return n == 2 }
		between(t, "winning again", until(t, "it leads again", again), 0, 3*time.Second)
		p.state(t, "in the next term", true, true)
		if _, ending := p.terms(); !errors.Is(ending, errLost) {
			t.Errorf("lead's context ended with %v, want errLost", ending)
		}
		if err := p.ends(); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]bool{true, false, true, false}, p.changes); diff != "" {
			t.Errorf("calls of Changed (-want +got):\n%s", diff)
		}
		if p.logged(`"msg"="lost leadership"`) != 1 || p.logged(`"reason"="the lock was not renewed in time"`) != 1 {
			t.Errorf("the log does not say once why leadership was lost: %v", p.lines)
		}
	})
}

// A request that hangs is as good as a process that is stopped: when it comes back, it renews a
// lease that may have been another's meanwhile.
func TestRenewalThatHangs(t *testing.T) {
	for title, hang := range map[string]time.Duration{
		"for a second, which is fine":          time.Second,
		"beyond the deadline":                  12 * time.Second,
		"until the lease could be another's":   18 * time.Second,
		"until the elector gives up by itself": time.Minute,
	} {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				p := c.start(t, "a", dsl.LeaderLease, nil)
				pass(time.Minute)
				renewed := p.renewed()
				p.breaks(func(request string) error {
					p.breaks(nil)
					<-time.After(hang)
					return nil
				})
				lost := hang > DefaultRenewDeadline
				for time.Since(renewed) < hang+DefaultRetryPeriod {
					pass(10 * time.Millisecond)
					n, _ := p.terms()
					late := lost && time.Since(renewed) >= DefaultRenewDeadline
					if n == 1 && p.Held() == late {
						t.Fatalf("%v after the last renewal Held is %v", time.Since(renewed), p.Held())
					}
				}
				pass(10 * time.Second)
				p.state(t, "in the end", true, true)
				if n, _ := p.terms(); n != map[bool]int{false: 1, true: 2}[lost] {
					t.Errorf("%d terms, the leadership was lost: %v", n, lost)
				}
				p.stop()
			})
		})
	}
}

func TestRenewalCountsFromWhenItWasAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newCluster().start(t, "a", dsl.LeaderLease, nil)
		pass(time.Minute)
		asked := make(chan time.Time, 1)
		p.breaks(func(string) error {
			p.breaks(down)
			asked <- time.Now()
			<-time.After(5 * time.Second)
			return nil
		})
		begun := <-asked
		until(t, "the fence closes", func() bool { return !p.Held() })
		between(t, "closing the fence", time.Since(begun), DefaultRenewDeadline, DefaultRenewDeadline+100*time.Millisecond)
		p.stop()
	})
}

// The machine is suspended for longer than the lease lasts. When it wakes up, the first thing that
// happens is that a renewal succeeds.
func TestLateRenewalDoesNotOpenTheFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newCluster().start(t, "a", dsl.LeaderLease, nil)
		pass(time.Minute)
		p.breaks(func(string) error {
			p.breaks(nil)
			p.fence.renew(moment(time.Hour, time.Second))
			return nil
		})
		until(t, "a new term", func() bool { n, _ := p.terms(); return n == 2 })
		if _, ending := p.terms(); !errors.Is(ending, errLost) {
			t.Errorf("lead's context ended with %v, want errLost", ending)
		}
		p.state(t, "in the new term", true, true)
		p.stop()
	})
}

func TestLeaseTakenByForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		p := c.start(t, "a", dsl.LeaderLease, func(ctx context.Context) error {
			<-ctx.Done()
			if errors.Is(context.Cause(ctx), errLost) {
				return errDown
			}
			return ctx.Err()
		})
		pass(time.Minute)
		other := "other"
		c.change(func(c *cluster) { c.lease.Spec.HolderIdentity = &other })
		took := until(t, "it stops", func() bool { return !p.Held() && !p.leads() })
		between(t, "noticing", took, 0, 2500*time.Millisecond)
		between(t, "the other's lease", until(t, "it leads again", p.leads), leastWait, mostWait)
		if p.logged("the work ended with an error") != 1 {
			t.Errorf("the work's error is not in the log: %v", p.lines)
		}
		if p.logged(`"reason"="the lock is not this process's any more"`) != 1 || p.logged(`"msg"="another process leads" "lock"="ns/lock" "leader"="other"`) != 1 {
			t.Errorf("the log does not say once why leadership was lost, and to whom: %v", p.lines)
		}
		if err := p.ends(); err != nil {
			t.Error(err)
		}
	})
}

func TestStandbyStopsQuietly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		a := c.start(t, "a", dsl.LeaderLease, nil)
		pass(time.Second)
		b := c.start(t, "b", dsl.LeaderLease, nil)
		pass(time.Minute)
		var asked atomic.Int32
		b.breaks(func(request string) error {
			if request != "get leases" {
				t.Errorf("a standby asked to %s", request)
			}
			asked.Add(1)
			<-time.After(time.Second)
			return nil
		})
		until(t, "b asks", func() bool { return asked.Load() > 0 })
		if err := b.ends(); err != nil {
			t.Error(err)
		}
		if n, _ := b.terms(); asked.Load() != 1 || n != 0 || b.logged(`"error"=`) > 0 {
			t.Errorf("%d requests, %d terms, %v", asked.Load(), n, b.lines)
		}
		if b.logged(`"msg"="another process leads"`) != 1 {
			t.Errorf("the log does not say once who leads: %v", b.lines)
		}
		if c.holder() != "a" || !a.Held() {
			t.Errorf("the holder is %q", c.holder())
		}
		a.stop()
	})
}
