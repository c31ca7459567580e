// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/health"
	"github.com/handwerk-dev/handwerk/engine/ops"
)

// Ready tells how the operator is: whether it has started, and how each of its resources is. A
// degraded resource degrades itself alone.
func (e *Engine) Ready() []ops.Check {
	start := ops.Check{Name: "started"}
	switch {
	case e.leaving.Load():
		start.State, start.Message = ops.Fail, "stopping"
	case e.started.Load():
	case e.standsBy():
		start.Message = "standing by: another process leads"
	default:
		start.State, start.Message = ops.Fail, "first listings are not complete"
	}
	out, by := []ops.Check{start}, e.access.By()
	for r := range e.resources.All {
		out = append(out, r.checks(by)...)
	}
	return slices.Concat(out, e.access.Checks(), e.recheck.Checks())
}

// checks tells how a resource is. By is how a message about a missing right ends.
func (r *resource) checks(by string) []ops.Check {
	out := []ops.Check{r.own.Check("resource/"+r.name, by)}
	warn := func(about, message string) {
		if message != "" {
			out = append(out, ops.Check{Name: about + r.name, State: ops.Warn, Message: message})
		}
	}
	warn("departed/", r.fates.Doubts())
	r.besides(func(what, name string, f *feed.Feed) { out = append(out, f.Check(what+r.name+"/"+name, by)) })
	warn("running/", r.busy.Long())
	return out
}

// besides calls a function with the feeds of children and related objects, what each brings in and its name.
func (r *resource) besides(do func(what, name string, f *feed.Feed)) {
	for _, f := range r.family.Kinds() {
		do("child/", f.Name().String(), f)
	}
	for relation, f := range r.related.Feeds {
		do("related/", relation, f)
	}
}

// Healthy tells whether the process should be left alone. A degraded resource is no reason to
// restart it: a restart mends nothing.
func (e *Engine) Healthy() []ops.Check { return []ops.Check{{Name: "ping"}} }

// standsBy reports whether this process is ready to lead: its caches are warm.
func (e *Engine) standsBy() bool {
	cold := func(f *feed.Feed) bool { return f.Status().Phase == health.Starting }
	return !slices.ContainsFunc(e.feeds.All(), cold) && !e.elector.Leading()
}

// stats is the state of the resources for metrics.
func (e *Engine) stats() (out []ops.ResourceStats) {
	for r := range e.resources.All {
		s := ops.ResourceStats{Resource: r.name, Up: r.own.Status().Phase == health.Running, Feeds: map[string]bool{}}
		s.Objects, s.LastEvent = r.own.Stats()
		s.Parked, s.Broken = r.box.Held()
		s.Standing = r.box.Standings()
		r.besides(func(what, name string, f *feed.Feed) { s.Feeds[what+name] = f.Status().Well() })
		out = append(out, s)
	}
	return out
}
