// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/operate/status"
	"github.com/handwerk-dev/handwerk/engine/reconcile"
)

// mostUnready is how many objects that are not ready are named for each health.
const mostUnready = 20

// Ready reports the state of the operator: whether it has started, and the state of each resource. A degraded resource
// does not degrade others.
func (e *Engine) Ready() []ops.Check { return e.checks(mostUnready) }

// checks returns the checks of Ready, with so many objects of each health that are not ready.
func (e *Engine) checks(unready int) []ops.Check {
	start := ops.Check{Name: "started"}
	switch e.state() {
	case status.Stopping:
		start.State, start.Message = ops.Fail, "stopping"
	case status.Starting:
		start.State, start.Message = ops.Fail, "first listings are not complete"
	case status.StandingBy:
		start.Message = "standing by: another process leads"
		if err := e.elector.Trouble(); err != nil {
			start.State, start.Message = ops.Warn, "standing by: "+err.Error()
		}
	case status.Working:
	}
	out, by := slices.Concat([]ops.Check{start}, e.pauses.checks(), e.limits.checks(), e.requests.checks()), e.access.AccountSuffix()
	for r := range e.resources.All {
		of := r.report()
		if unready > 0 {
			of.Unready = r.inbox.Unready(unready)
		}
		out = append(out, of.Checks(by, r.tombstones.Unconfirmed(), r.controller.Running.Long(), r.daemons.Late())...)
	}
	return slices.Concat(out, e.indexes.Checks(by), e.hooks.Checks(dsl.ReadyProbe), e.access.Checks(), e.recheck.Checks())
}

// report returns the present state of the resource.
func (r *resource) report() reconcile.Report {
	out := reconcile.Report{Name: r.name, Own: r.own, Children: slices.Concat(r.family.Kinds(), r.family.Retired.Sources()), Related: r.related.Sources}
	out.Schedules = r.controller.FailingSchedules()
	return out
}

// Healthy reports whether the process should be left alone. A degraded resource is no reason for a restart, which would
// not fix it. The operator's own probes report reasons for a restart.
func (e *Engine) Healthy() []ops.Check {
	return append([]ops.Check{{Name: "ping"}}, e.hooks.Checks(dsl.HealthProbe)...)
}

// state returns the state of the process.
func (e *Engine) state() status.State {
	switch {
	case e.phase.leaving.Load():
		return status.Stopping
	case e.phase.working.Load():
		return status.Working
	case e.standsBy():
		return status.StandingBy
	}
	return status.Starting
}

// standsBy reports whether this process is ready to lead: its caches are warm.
func (e *Engine) standsBy() bool {
	cold := func(f *source.Source) bool { return f.Status().Phase == source.Starting }
	return !slices.ContainsFunc(e.sources.All(), cold) && !e.elector.Leading()
}

// stats returns the state of the resources for metrics.
func (e *Engine) stats() (out []ops.ResourceStats) {
	for r := range e.resources.All {
		s := r.report().Stats()
		s.Parked, s.Broken = r.inbox.CountHeld()
		s.Health, s.Daemons, s.States = r.inbox.CountHealth(), r.daemons.Counts(), r.controller.Machines.Stats()
		out = append(out, s)
	}
	return out
}
