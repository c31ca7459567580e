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
)

// remember keeps what the reconcile worked out, after its write, and returns the result.
func (p *run) remember(st State, v change) Result {
	m := p.memory
	p.ledger.Keep(v.marks)
	if p.outcomesRead != nil {
		st = p.outcomes(st)
	}
	if written := v.marks.Ready; written != nil {
		m.Ready = digestOf(conditionMap(written))
	}
	m.Rerun = v.rerun
	p.family.Close(st.through())
	if st.Found.Resync || !m.Seen {
		m.Resync = nextResync(p.Rules.Spec.Resync, p.Now, !m.Seen)
	}
	m.Seen = true
	// What the only handler that runs for related objects has changed is no change for it; what others have is.
	if len(p.Rules.Relates) == 1 && st.Jobs.askedBy(p.Rules.Relates) {
		p.related.ExpectOwnState(func() *unstructured.Unstructured { return p.foreseen(st) })
	}
	m.Related = p.related.State()
	p.indexes.Keep(true)
	st = p.scheduleNext(st)
	if p.Machines.Any() {
		p.Machines.Finished(st.written(), st.Jobs, m)
	}
	if !st.Due.Now && (st.Due.After <= 0 || st.Due.After > breaker.Slow) {
		m.Woken = breaker.Woken{} // the next reconcile has another reason
	}
	return p.concluded(p.limitLoops(st, v), v)
}

// concluded is the result of a reconcile that has written its object.
func (p *run) concluded(st State, v change) Result {
	if len(p.Rules.Daemons) > 0 {
		p.syncDaemons(st, !v.vanished)
	}
	out := p.result(st, nil)
	out.Written = st.written()
	if !p.Gone { // the key may be that of another object
		out.Stand, out.Stands = p.stand(st, p.Rules.Readers, v.Held), true
	}
	if out.Written != nil && p.Rules.Echoes && len(out.Stand.Open) == 0 && p.isIdle(st, v) {
		out.Echoes = p.echoes(st)
	}
	return out
}

// isIdle reports whether the next reconcile would find nothing to do in the object as this reconcile has written it, by the server's answer. In doubt it
// is false: then the event of the write starts a reconcile.
func (p *run) isIdle(st State, v change) bool {
	written := st.written()
	if v.vanished || st.Due.Now || p.hasUnfinishedWork() || p.isTerminating(written) || written.GetGeneration() != p.Object.GetGeneration() {
		return false
	}
	if v.Remove || p.isInstructed(written) || p.hasPendingCondition(written) || !p.family.Rests(written) || !p.ledger.Rests(written) {
		return false
	}
	at := st.Draft
	if at.Current != written {
		at = p.looking(st, written)
	}
	return p.handlersIdle(at) && slices.Contains(written.GetFinalizers(), p.Rules.Finalizer) == p.wantsFinalizer(at)
}

// isInstructed reports whether the annotations of an object ask for a retry or a pause. Somebody else may have written that right before the
// reconcile, and a watch that lists again shows both writes as one.
func (p *run) isInstructed(o *unstructured.Unstructured) bool {
	_, retry := dsl.Path{"metadata", "annotations", p.Rules.Retry}.In(o.Object)
	return retry || p.Pauses.Of(o) != nil
}

// handlersIdle reports whether no handler has anything to do in an object as a draft has it.
func (p *run) handlersIdle(at Draft) bool {
	return !slices.ContainsFunc(p.Rules.Readers, func(r progress.Handler) bool {
		asks := r.On(dsl.Delete) && !r.NoFinalizer && r.When != nil // each reconcile asks for the sake of the finalizer
		return asks || p.memory.Filters.Of(r.Handler) != "" || !p.ledger.HandlerRests(r, at.Look, filter.Chooses(r.Handler, at.Current))
	})
}

// isTerminating reports whether the object is gone, or is being deleted before or after the write.
func (p *run) isTerminating(written *unstructured.Unstructured) bool {
	return p.Gone || p.Deletion != "" || written.GetDeletionTimestamp() != nil
}

// hasUnfinishedWork reports whether something is remembered for which the next reconcile runs handlers, or writes.
func (p *run) hasUnfinishedWork() bool {
	m := p.memory
	if len(m.Ignored)+len(m.Refused)+len(m.Rerun) > 0 || m.Owes {
		return true
	}
	return m.Halt != nil || m.Troubles.Any() || m.Breaker.Wait(time.Now()) > 0
}

// hasPendingCondition reports whether an object has a status that each reconcile may change: conditions of the engine's own, and what was set for an
// earlier generation.
func (p *run) hasPendingCondition(o *unstructured.Unstructured) bool {
	if seen, found := observedOf(o); found && p.Rules.SetsGeneration && seen != o.GetGeneration() {
		return true
	}
	return slices.ContainsFunc(ConditionsOf(o), func(c map[string]any) bool {
		seen, is := c["observedGeneration"].(int64)
		return c["type"] == Failing || c["type"] == PausedCondition || is && seen > 0 && seen < o.GetGeneration()
	})
}

// echoes are what the reconcile has written its object as, in order.
func (p *run) echoes(st State) (out []inbox.Echo) {
	for _, o := range st.Written {
		out = append(out, inbox.EchoOf(p.Writer.Shown(o)))
	}
	return slices.Compact(out) // a write that changes nothing makes no version
}

// abandon is the place where a reconcile over an object gives up: it broke off, or its write has failed. What handlers did is remembered as far as
// nothing of it is lost: those that wanted nothing of the object need not run again, unless they asked for it.
func (p *run) abandon(st State, err error) Result {
	// No time has passed for handlers that the reconcile did not come to: the zero time keeps what they asked for. What others asked for in
	// this reconcile holds also if they are to run once more: the write may have been made, and then they do not.
	p.memory.Again = alarmAgain(p.memory.Again, st.Jobs, Times{Ended: time.Now()}, false)
	for _, j := range st.Jobs.Asking() {
		p.void(j)
	}
	p.ledger.Abandon()
	if m := p.memory; p.Deletion == "" {
		late := st.Jobs.Rerun(p.Rules.Readers, p.family.Writes())
		late = append(late, p.family.Leaving()...)
		m.Rerun = slices.Compact(slices.Sorted(slices.Values(append(m.Rerun, late...))))
	}
	return p.result(st, err)
}
