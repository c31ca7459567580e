// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
	"github.com/handwerk-dev/handwerk/engine/operate/status"
)

// Ask implements [ops.Debug]. It answers "status" with a [status.Status], and "why" with a [why.Answer].
func (e *Engine) Ask(ctx context.Context, question string, values url.Values) (any, error) {
	switch question {
	case "status":
		return e.status(), nil
	case why.Asked:
		q, err := why.ParseQuestion(values)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return e.Why(ctx, q)
	}
	return nil, apierrors.NewBadRequest(fmt.Sprintf("unknown question %q (want status or why)", question))
}

// status returns the state of the process.
func (e *Engine) status() *status.Status {
	election := e.op.Settings.LeaderElection
	out := &status.Status{
		At: time.Now(), Operator: e.op.Name, Version: e.settings.Version, Process: e.settings.Identity, Started: e.made, State: e.state(),
		Configuration: status.Configuration{Files: e.op.Files, Digest: e.op.Digest, Loaded: e.made},
		Pauses:        e.Pauses(),
		Leader: status.Leader{
			Mode: string(cmp.Or(election.Mode, dsl.LeaderNone)), Leads: e.elector.Leading(), Since: e.elector.Since(), Holder: e.elector.Leader(),
		},
	}
	if out.Leader.Mode != string(dsl.LeaderNone) {
		out.Leader.Lock = e.settings.Namespace + "/" + e.op.LeaderLock()
	}
	for r := range e.resources.All {
		out.Resources = append(out.Resources, r.status())
	}
	for _, c := range e.checks(0) {
		if c.State != ops.Pass {
			out.Degraded = append(out.Degraded, status.Check{Name: c.Name, State: c.State.String(), Message: c.Message})
		}
	}
	return out
}

// status returns the state of the resource.
func (r *resource) status() status.Resource {
	of := r.report()
	out := status.Resource{Source: statusOf(r.name, of.Own), Queue: r.queueStatus(), Health: map[string]int{}}
	of.EachOtherSource(func(what, name string, f *source.Source) { out.Sources = append(out.Sources, statusOf(what+name, f)) })
	out.Parked, out.Looping = r.inbox.CountHeld()
	for how, n := range r.inbox.CountHealth() {
		out.Health[string(how)] = n
	}
	for _, s := range r.inbox.Unready(mostUnready) {
		for _, one := range s.Oldest {
			o := status.Object{Name: one.Object, Health: string(s.Health), Since: one.Since}
			for _, open := range one.Open {
				o.Why = append(o.Why, open.String())
			}
			out.NotReady = append(out.NotReady, o)
		}
	}
	for _, d := range r.daemons.Counts() {
		out.Daemons = append(out.Daemons, status.Daemons{Handler: d.Handler, Running: d.Running, Late: d.Late})
	}
	for _, s := range r.controller.Machines.Stats() {
		out.States = append(out.States, status.InState{Machine: s.Machine, State: s.State, Objects: s.Objects, Oldest: moment(s.Oldest)})
	}
	return out
}

// queueStatus returns the state of the resource's queue.
func (r *resource) queueStatus() status.Queue {
	s := r.inbox.Queue()
	out := status.Queue{Workers: r.workers(), Working: s.Working, Longest: moment(s.Longest), Waiting: map[string]int{}, Oldest: moment(s.Oldest), Later: s.Later}
	for class, n := range s.Waiting {
		out.Waiting[class.String()] = n
	}
	return out
}

func statusOf(name string, f *source.Source) status.Source {
	now := f.Status()
	objects, last := f.Stats()
	return status.Source{
		Name: name, State: string(now.Phase), Message: cmp.Or(now.Message, now.Warning), Objects: objects, Bytes: f.Size(), LastEvent: moment(last),
	}
}

// moment returns a time for an answer, nil for zero.
func moment(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}
