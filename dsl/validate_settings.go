// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

func (s *Settings) check(c check) {
	if s.Burst > 0 && s.QPS == 0 {
		c.note(Fault{Unwanted: true, Lacks: "settings.qps"}, "settings.burst", "needs qps")
	}
	if s.GracePeriod < 0 || s.QPS < 0 || s.Burst < 0 {
		c.fault("settings", "no time and no number must be negative")
	}
	c.choice("settings.events", string(cmp.Or(s.Events, EventsWarnings)), s.Events)
	s.Limits.Deletions.check(c, "settings.limits.deletions")
	s.LeaderElection.check(c)
}

func (e *LeaderElection) check(c check) {
	const at = "settings.leaderElection."
	only := func(allowed bool, what, field string, given bool) {
		if !allowed && given {
			more := Fault{Unwanted: true}
			if e.Mode == "" {
				more.Lacks = at + "mode"
			}
			c.note(more, at+field, "is only for %s", what)
		}
	}
	mode := cmp.Or(e.Mode, LeaderNone)
	if !c.choice(at+"mode", string(mode), mode) {
		return
	}
	elected, lease := mode != LeaderNone, mode == LeaderLease
	only(elected, "modes lease and life", "name", e.Name != "")
	only(elected, "modes lease and life", "namespace", e.Namespace != "")
	only(lease, "mode lease", "leaseDuration", e.LeaseDuration != 0)
	only(lease, "mode lease", "renewDeadline", e.RenewDeadline != 0)
	only(lease, "mode lease", "retryPeriod", e.RetryPeriod != 0)
	if faults := validation.IsDNS1123Subdomain(e.Name); e.Name != "" && len(faults) > 0 {
		c.fault(at+"name", "want the name of an object: %s", faults[0])
	}
	if faults := validation.IsDNS1123Label(e.Namespace); e.Namespace != "" && len(faults) > 0 {
		c.fault(at+"namespace", "want a namespace: %s", faults[0])
	}
	switch {
	case min(e.LeaseDuration, e.RenewDeadline, e.RetryPeriod) < 0:
		c.fault("settings.leaderElection", "no time must be negative")
	case lease:
		e.checkPeriods(c, at)
	}
}

// checkPeriods checks that a leader gives up before a standby takes over, and tries more than once before that. The
// fault is placed at a field that is set.
func (e *LeaderElection) checkPeriods(c check, at string) {
	duration := cmp.Or(e.LeaseDuration, 15*time.Second)
	deadline := cmp.Or(e.RenewDeadline, 10*time.Second)
	retry := cmp.Or(e.RetryPeriod, 2*time.Second)
	if duration <= deadline {
		c.either(at+"leaseDuration", at+"renewDeadline", e.LeaseDuration != 0, e.RenewDeadline != 0, "leaseDuration (%v) must be more than renewDeadline (%v)", duration, deadline)
	}
	if float64(deadline) <= 1.2*float64(retry) {
		c.either(at+"renewDeadline", at+"retryPeriod", e.RenewDeadline != 0, e.RetryPeriod != 0, "renewDeadline (%v) must be more than 1.2 times retryPeriod (%v)", deadline, retry)
	}
}
