// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

func TestReleaseSurvivesConflicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		p := c.start(t, "a", dsl.LeaderLease, nil)
		pass(time.Minute)
		conflicts := 2
		p.breaks(func(request string) error {
			if request == "update leases" && conflicts > 0 {
				conflicts--
				c.change(func(*cluster) {}) // somebody labels the lease
			}
			return nil
		})
		if err := p.ends(); err != nil {
			t.Error(err)
		}
		if c.holder() != "" || conflicts != 0 {
			t.Errorf("the holder is %q", c.holder())
		}
	})
}

func TestReleaseThatFailsIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		p := c.start(t, "a", dsl.LeaderLease, nil)
		pass(time.Minute)
		p.dies()
		if p.err != nil || p.logged("releasing lease ns/lock: it is down") != 1 {
			t.Errorf("Run returned %v, the log says %v", p.err, p.lines)
		}
	})
}

// A process that lost its leadership and whose work does not end must not keep others from leading.
func TestALoserDoesNotHoldTheLease(t *testing.T) {
	tests := map[string]func(c *cluster){
		"the Lease was deleted, and is made again by whoever comes first": func(c *cluster) { c.lease = nil },
		"the Lease was taken by somebody who gives it back": func(c *cluster) {
			none := ""
			c.lease.Spec.HolderIdentity = &none
		},
	}
	for title, happens := range tests {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				ends := make(chan struct{})
				a := c.start(t, "a", dsl.LeaderLease, func(context.Context) error { <-ends; return nil })
				pass(time.Minute)
				c.change(happens)
				until(t, "the first one loses", func() bool { return !a.Leading() })
				b := c.start(t, "b", dsl.LeaderLease, nil)
				pass(mostWait)
				if !b.leads() || a.Held() {
					t.Errorf("after %v the other one leads: %v, and the first one writes: %v", mostWait, b.leads(), a.Held())
				}
				close(ends)
				a.stop()
				b.stop()
			})
		})
	}
}
