// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/handwerk-dev/handwerk/dsl"
)

func (p *part) settings(s *settings) dsl.Settings {
	if s == nil {
		return dsl.Settings{}
	}
	if s.Burst > 0 && !p.Has("settings.qps") {
		p.FaultKey("settings.burst", "needs qps")
	}
	out := dsl.Settings{GracePeriod: s.GracePeriod, QPS: s.QPS, Burst: s.Burst, Events: dsl.EventsMode(s.Events)}
	if s.LeaderElection != nil {
		out.LeaderElection = p.leader(s.LeaderElection)
	}
	return out
}

const leaderPath = path("settings.leaderElection")

func (p *part) leader(e *leaderElection) dsl.LeaderElection {
	lease, elected := e.Mode == mode(dsl.LeaderLease), e.Mode != mode(dsl.LeaderNone)
	if e.Mode != "" {
		p.onlyFor(elected, "modes lease and life", "name", "namespace")
		p.onlyFor(lease, "mode lease", "leaseDuration", "renewDeadline", "retryPeriod")
	}
	if faults := validation.IsDNS1123Subdomain(e.Name); e.Name != "" && len(faults) > 0 {
		p.Fault(leaderPath.Key("name"), "want the name of an object: %s", faults[0])
	}
	if faults := validation.IsDNS1123Label(e.Namespace); e.Namespace != "" && len(faults) > 0 {
		p.Fault(leaderPath.Key("namespace"), "want a namespace: %s", faults[0])
	}
	if lease {
		p.periods(e)
	}
	return dsl.LeaderElection{
		Mode: dsl.LeaderMode(e.Mode), Name: e.Name, Namespace: e.Namespace,
		LeaseDuration: e.LeaseDuration, RenewDeadline: e.RenewDeadline, RetryPeriod: e.RetryPeriod,
	}
}

func (p *part) onlyFor(allowed bool, what string, names ...string) {
	for _, name := range names {
		if at := leaderPath.Key(name); !allowed && p.Has(at) {
			p.FaultKey(at, "is only for %s", what)
		}
	}
}

// periods checks that a leader gives up before a standby takes over, and tries more than once
// before that. The fault is where the author wrote something.
func (p *part) periods(e *leaderElection) {
	duration := cmp.Or(e.LeaseDuration, 15*time.Second)
	deadline := cmp.Or(e.RenewDeadline, 10*time.Second)
	retry := cmp.Or(e.RetryPeriod, 2*time.Second)
	written := func(names ...string) path {
		for _, name := range names {
			if at := leaderPath.Key(name); p.Has(at) {
				return at
			}
		}
		return leaderPath
	}
	if duration <= deadline {
		p.Fault(written("leaseDuration", "renewDeadline"),
			"leaseDuration (%v) must be more than renewDeadline (%v)", duration, deadline)
	}
	if float64(deadline) <= 1.2*float64(retry) {
		p.Fault(written("renewDeadline", "retryPeriod"),
			"renewDeadline (%v) must be more than 1.2 times retryPeriod (%v)", deadline, retry)
	}
}
