// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
	"github.com/handwerk-dev/handwerk/engine/reconcile/history"
)

// Answer says why the handlers of an object ran or not, from the history and the inbox, without reading the object. It
// is safe for concurrent use.
func (s *Controller) Answer(key cache.ObjectName) *why.Answer {
	out := &why.Answer{
		Operator: s.Rules.Operator.Name, At: time.Now(), Resource: s.Rules.Resource, Kind: s.Own.Resource().Kind,
		Namespace: key.Namespace, Name: key.Name,
	}
	if o, found := s.Own.Get(key); found {
		out.UID, out.Generation = string(o.GetUID()), o.GetGeneration()
		if at := o.GetDeletionTimestamp(); at != nil {
			out.Deletion = &why.Deletion{Since: at.Time, Finalizers: o.GetFinalizers()}
		}
	}
	s.stands(key, out)
	kept := s.Observer.History.Of(s.Observer.id(key))
	if len(kept) > 0 && kept[len(kept)-1].Due.After(out.At) {
		out.Due = &kept[len(kept)-1].Due
	}
	for _, r := range s.Rules.Readers {
		out.Handlers = append(out.Handlers, handlerIn(kept, r, s.Rules.Spec.OfSecrets()))
	}
	if run, runs := s.Running.Of(key); runs && run.Handler != "" {
		if h := out.Handler(run.Handler); h != nil {
			h.Running = &run.Entered
		}
	}
	return out
}

// History returns the recorded reconciles over an object, the oldest first.
func (s *Controller) History(key cache.ObjectName) (out []why.Reconcile) {
	kept := s.Observer.History.Of(s.Observer.id(key))
	for i, p := range kept {
		one := why.Reconcile{
			At: p.At, Took: metav1.Duration{Duration: p.Took}, Woken: p.Woken, Wrote: p.Wrote, Error: p.Err, Due: moment(p.Due), More: p.More, Latest: moment(p.Latest),
		}
		if p.Idle != "" {
			reason, detail, _ := strings.Cut(p.Idle, ": ")
			one.Idle = why.IdleFor(why.Known(reason), detail).Says
		}
		one.Changed = newIn(kept[:i+1], s.Rules.Spec.OfSecrets())
		for _, a := range p.Attempts {
			one.Attempts = append(one.Attempts, why.Attempt{Handler: a.Handler, Run: runOf(p, a)})
		}
		for _, k := range p.Skips {
			says := why.Sentence(why.Facts{Handler: k.Handler, Reason: why.Known(k.Reason), Detail: k.Detail, Cause: k.Cause})
			one.Skips = append(one.Skips, why.Skip{Handler: k.Handler, Cause: k.Cause, Reason: k.Reason, Says: says})
		}
		out = append(out, one)
	}
	return out
}

// stands fills in the object's health from the inbox.
func (s *Controller) stands(key cache.ObjectName, out *why.Answer) {
	seen, known := s.Inbox.Status(key)
	if !known {
		return
	}
	out.Health, out.Since = string(seen.Health), moment(seen.Since)
	if seen.Unfinished > 0 {
		out.Problem = "reconcile could not be finished: " + seen.Problem
	}
	switch {
	case seen.Suspended.After(out.At):
		out.Idle = why.IdleFor(why.BreakerOpen, "")
		out.Idle.Until = &seen.Suspended
	case !seen.Parked.IsZero():
		out.Idle = why.IdleFor(why.CacheBehind, "")
	}
}

// handlerIn returns what the recorded reconciles say about a handler.
func handlerIn(kept []history.Reconcile, r progress.Handler, secret bool) why.Handler {
	f := why.Facts{Handler: r.ID}
	out := why.Handler{ID: r.ID}
	var handled *cached.Object // by the last attempt with a final outcome
	for i, p := range kept {
		for _, a := range p.Attempts {
			if a.Handler != r.ID {
				continue
			}
			run := runOf(p, a)
			out.Last, f.Reason, f.Cause, f.Message = &run, why.Ran, a.Cause, a.Err
			out.Changed = nil
			if dsl.Cause(a.Cause) == dsl.Update {
				out.Changed = changesFrom(handled, kept[:i+1], secret, func(at dsl.Path) bool { return why.Looks(r.View.View, at) })
			}
			if slices.Contains([]ops.Outcome{ops.Success, ops.Ignored, ops.Failed}, ops.Outcome(a.Outcome)) {
				handled = p.Version
			}
		}
		for _, k := range p.Skips {
			if k.Handler == r.ID {
				f.Reason, f.Detail, f.Cause = why.Known(k.Reason), k.Detail, k.Cause
			}
		}
	}
	out.Reason, out.Cause = f.Reason.String(), f.Cause
	f = f.After(out.Last)
	out.State, out.Says = f.State(), why.Sentence(f)
	return out
}

// changesFrom returns the changes of the object from a version to the last reconcile. If the version is unknown, it
// begins with the one before the last.
func changesFrom(from *cached.Object, kept []history.Reconcile, secret bool, wanted func(dsl.Path) bool) []why.Change {
	last := kept[len(kept)-1].Version
	if from != nil && last != nil {
		return changes(from, last, secret, wanted)
	}
	for i := len(kept) - 2; i >= 0 && last != nil; i-- {
		for _, before := range []*cached.Object{kept[i].Left, kept[i].Version} {
			if before != nil && !history.Same(before, last) {
				return changes(before, last, secret, wanted)
			}
		}
	}
	return nil
}

// newIn returns the changes that the last reconcile was the first to see.
func newIn(kept []history.Reconcile, secret bool) []why.Change {
	last := kept[len(kept)-1].Version
	for i := len(kept) - 2; i >= 0 && last != nil; i-- {
		if before := cmp.Or(kept[i].Left, kept[i].Version); before != nil {
			return changes(before, last, secret, nil)
		}
	}
	return nil
}

// changes returns the changes from one version to another.
func changes(before, after *cached.Object, secret bool, wanted func(dsl.Path) bool) []why.Change {
	from, to := before.Tree(), after.Tree()
	if from == nil || to == nil {
		return nil
	}
	return why.Changes(from.Object, to.Object, secret, wanted)
}

func runOf(p history.Reconcile, a history.Attempt) why.Run {
	return why.Run{At: p.At, Cause: a.Cause, Number: a.Number, Outcome: a.Outcome, Error: a.Err, Took: metav1.Duration{Duration: a.Took}}
}

// moment returns a time for an answer; nil for zero.
func moment(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}
