// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/decide/breaker"
	"github.com/handwerk-dev/handwerk/engine/decide/filter"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/reconcile/conditions"
)

// remember keeps the results of a run in memory, after its write, and computes when the key is due next.
func (p *run) remember(st State, v change) State {
	m := p.memory
	p.progress.Keep(v.marks)
	if p.outcomesRead != nil {
		st = p.outcomes(st)
	}
	if written := v.marks.Ready; sets(written, dsl.Ready) {
		m.Ready = conditions.DigestOf(&written[0])
	}
	m.Rerun = v.rerun
	p.family.Close(st.through())
	if st.Found.Resync || !m.Seen {
		m.Resync = nextResync(p.Rules.Spec.Resync, p.Now, !m.Seen)
	}
	m.Seen = true
	// The own changes of the only handler of related objects are no trigger for it, but changes by others are.
	if len(p.Rules.Relates) == 1 && st.Attempts.askedBy(p.Rules.Relates) && p.related.HasSelf() {
		p.related.ExpectOwnState(p.foreseen(st))
	}
	m.Related = p.related.State()
	p.indexes.Keep(true)
	st = p.scheduleNext(st)
	if p.Machines.Any() {
		p.Machines.Finished(st.written(), st.Attempts, m)
	}
	if !st.Due.Now && (st.Due.After <= 0 || st.Due.After > breaker.Slow) {
		m.Woken = breaker.Woken{} // the next reconcile has another reason
	}
	return p.limitLoops(st, v)
}

// conclude returns the result of a reconcile that has written its object.
func (p *run) conclude(st State, v change) Result {
	p.syncDaemons(st, !v.vanished)
	out := p.result(st, nil)
	out.Written = st.written()
	out.Health, out.HealthKnown = p.health(st, p.Rules.Readers, v.Held), true
	if out.Written != nil && p.Rules.Echoes && len(out.Health.Open) == 0 && p.isIdle(st, v) {
		out.Echoes = p.echoes(st)
	}
	out.Health = p.healthUnready(st, out.Health)
	return out
}

// isIdle reports whether the next reconcile would find nothing to do in the object as the server returned it. In doubt
// it returns false, and the event of the write starts a reconcile.
func (p *run) isIdle(st State, v change) bool {
	written := st.written()
	if v.vanished || st.Due.Now || p.hasUnfinishedWork() || p.isTerminating(written) || written.GetGeneration() != p.Object.GetGeneration() {
		return false
	}
	if v.Remove || p.isInstructed(written) || p.hasPendingCondition(written) || !p.family.IsIdle(written) || !p.progress.IsIdle(written) {
		return false
	}
	at := st.Draft
	if at.Current != written {
		at = p.looking(st, written)
	}
	return p.handlersIdle(at) && slices.Contains(written.GetFinalizers(), p.Rules.Finalizer) == p.wantsFinalizer(at)
}

// isInstructed reports whether annotations of the object ask for a retry or a pause. Somebody may have set one just
// before the write, and a relist shows both changes as one event.
func (p *run) isInstructed(o *unstructured.Unstructured) bool {
	_, retry := dsl.Path{"metadata", "annotations", p.Rules.Retry}.In(o.Object)
	return retry || p.Pauses.Of(o) != nil
}

// handlersIdle reports whether no handler has anything to do for the object of a draft.
func (p *run) handlersIdle(at Draft) bool {
	return !slices.ContainsFunc(p.Rules.Readers, func(r progress.Handler) bool {
		asks := r.On(dsl.Delete) && !r.NoFinalizer && r.When != nil // evaluated in each reconcile to decide about the finalizer
		return asks || p.memory.Filters.Of(r.Handler) != "" || !p.progress.IsHandlerIdle(r, at.Look, filter.Matches(r.Handler, at.Current))
	})
}

// isTerminating reports whether the object is being deleted, before or after the write.
func (p *run) isTerminating(written *unstructured.Unstructured) bool {
	return p.Deletion != "" || written.GetDeletionTimestamp() != nil
}

// hasUnfinishedWork reports whether the state has work for the next reconcile: handlers to run, or something to write.
func (p *run) hasUnfinishedWork() bool {
	m := p.memory
	if len(m.Ignored)+len(m.Rejected)+len(m.Rerun) > 0 || m.Owes {
		return true
	}
	return m.Halt != nil || m.Troubles.Any() || m.Breaker.Wait(time.Now()) > 0
}

// hasPendingCondition reports whether a reconcile may change the object's status: it has a condition of the engine, or
// one for an earlier generation.
func (p *run) hasPendingCondition(o *unstructured.Unstructured) bool {
	if seen, found := observedOf(o); found && p.Rules.SetsGeneration && seen != o.GetGeneration() {
		return true
	}
	return slices.ContainsFunc(conditions.All(o), func(c map[string]any) bool {
		return c["type"] == conditions.HandlersFailing || c["type"] == conditions.Paused || conditions.IsEarlier(c, o)
	})
}

// echoes returns the versions of the object that the reconcile has written, in order.
func (p *run) echoes(st State) (out []inbox.Echo) {
	for _, o := range st.Written {
		out = append(out, inbox.EchoOf(p.Writer.Shown(o)))
	}
	return slices.Compact(out) // a write that changes nothing makes no version
}

// result returns the result of a reconcile. Err is why it could not be finished.
func (p *run) result(st State, err error) Result {
	due := st.Due
	if p.filters.due.After > 0 {
		due = due.Sooner(p.filters.due.After, p.filters.due.Class)
	}
	return Result{
		Input: p.Input, Due: due, Err: err, Attempts: st.Attempts, Ended: st.Ended, Notes: slices.Concat(p.filters.notes, st.Notes),
		Why: st.Why,
	}
}

// vanished returns the result of a run whose object was gone at the write. The next reconcile finds out what happened to
// it.
func (p *run) vanished(st State) Result {
	p.indexes.Keep(false)
	out := p.result(st, nil)
	out.Vanished = true
	return out
}

// abandon ends a reconcile that broke off or whose write failed. It keeps the outcomes of handlers that wanted no change
// of the object. Other handlers run again.
func (p *run) abandon(st State, err error) Result {
	p.indexes.Keep(false)
	// Handlers without an attempt keep their alarms: with the zero time none has passed. Alarms from attempts in this
	// reconcile hold even if the handlers run again: the write may have succeeded, and then they do not run.
	p.memory.Again = alarmAgain(p.memory.Again, st.Attempts, Times{Ended: time.Now()}, false)
	for _, j := range st.Attempts.Asking() {
		p.void(j)
	}
	p.progress.Abandon()
	if m := p.memory; p.Deletion == "" {
		late := st.Attempts.Rerun(p.Rules.Readers, p.family.Writes())
		late = append(late, p.family.HandlersToRunAgain()...)
		m.Rerun = slices.Compact(slices.Sorted(slices.Values(append(m.Rerun, late...))))
	}
	return p.result(st, err)
}
