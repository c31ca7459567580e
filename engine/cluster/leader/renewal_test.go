// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestTakeOverCountsFromTheLastRenewal has a leader that renews several times a second, and may write
// for almost as long as the others wait. Wherever in a second it is cut off, never do two lead.
func TestTakeOverCountsFromTheLastRenewal(t *testing.T) {
	const duration, deadline = 5 * time.Second, 4900 * time.Millisecond
	quick := func(s *Settings) {
		s.LeaseDuration, s.RenewDeadline, s.RetryPeriod = duration, deadline, 200*time.Millisecond
	}
	for cut := time.Duration(0); cut < time.Second; cut += 100 * time.Millisecond {
		t.Run(cut.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				a := c.startWith(t, "a", dsl.LeaderLease, nil, nil, quick)
				pass(time.Second)
				b := c.startWith(t, "b", dsl.LeaderLease, nil, nil, quick)
				pass(10*time.Second + cut)
				a.breaks(down)
				renewed := a.renewed()
				for !b.Held() {
					pass(10 * time.Millisecond)
					if a.Held() && b.Held() {
						t.Errorf("%s after a's last renewal, a and b may write", time.Since(renewed))
					}
				}
				between(t, "taking over", time.Since(renewed), duration, 2*duration)
				a.stop()
				b.stop()
			})
		})
	}
}
