// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
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
	out := []ops.Check{start}
	for _, r := range e.resources.list() {
		out = append(out, e.check(r.own, "resource/"+r.name))
		if doubt := r.unclear.said(); doubt != "" {
			out = append(out, ops.Check{Name: "departed/" + r.name, State: ops.Warn, Message: doubt})
		}
		for _, f := range r.family.Kinds() {
			out = append(out, e.check(f, "child/"+r.name+"/"+f.Name().String()))
		}
		for relation, f := range r.related.Feeds {
			out = append(out, e.check(f, "related/"+r.name+"/"+relation))
		}
		if message := r.busy.Long(); message != "" {
			out = append(out, ops.Check{Name: "running/" + r.name, State: ops.Warn, Message: message})
		}
	}
	return append(append(out, e.access.Checks()...), e.recheck.Checks()...)
}

// check tells how a feed is, and of which account when it lacks rights.
func (e *Engine) check(f *feed.Feed, name string) ops.Check {
	c := f.Check(name)
	if c.State != ops.Pass && len(f.Missing()) > 0 {
		c.Message += e.access.By()
	}
	return c
}

// Healthy tells whether the process should be left alone. A degraded resource is no reason to
// restart it: a restart mends nothing.
func (e *Engine) Healthy() []ops.Check { return []ops.Check{{Name: "ping"}} }

// standsBy reports whether this process is ready to lead: its caches are warm.
func (e *Engine) standsBy() bool {
	for _, f := range e.feeds() {
		if f.Status().Phase == health.Starting {
			return false
		}
	}
	return !e.elector.Leading()
}

// stats is the state of the resources for metrics.
func (e *Engine) stats() []ops.ResourceStats {
	var out []ops.ResourceStats
	for _, r := range e.resources.list() {
		s := ops.ResourceStats{Resource: r.name, Up: r.own.Status().Phase == health.Running}
		s.Objects, s.LastEvent = r.own.Stats()
		s.Parked, s.Broken = r.box.Held()
		s.Standing, s.Feeds = r.box.Standings(), r.feedsUp()
		out = append(out, s)
	}
	return out
}

// missingRights are the rights that are missing, also those that feeds tell of, for metrics.
func (e *Engine) missingRights() []ops.MissingRight {
	counts := e.access.Missing()
	for _, f := range e.feeds() {
		for _, m := range f.Missing() {
			one := ops.MissingRight{Resource: m.Resource, Verb: m.Verb}
			counts[one] = max(counts[one], m.Namespaces) // feeds of the same resource lack the same
		}
	}
	var out []ops.MissingRight
	for m, n := range counts {
		m.Namespaces = n
		out = append(out, m)
	}
	return out
}

// feedsUp tells of the feeds of children and related objects whether they are well.
func (r *resource) feedsUp() map[string]bool {
	out := map[string]bool{}
	for _, f := range r.family.Kinds() {
		out["child/"+f.Name().String()] = f.Check("").State == ops.Pass
	}
	for relation, f := range r.related.Feeds {
		out["related/"+relation] = f.Check("").State == ops.Pass
	}
	return out
}

// busy names the handlers that run at this moment, with their objects.
func (e *Engine) busy() []string {
	var out []string
	for _, r := range e.resources.list() {
		out = append(out, r.busy.List()...)
	}
	return out
}
