// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pass

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

// remember keeps what the pass worked out, after its write, and returns the result.
func (p *pass) remember(st State, v verdict) Result {
	m := p.memory
	p.ledger.Keep(v.marks)
	if p.heard != nil {
		st = p.outcomes(st)
	}
	if written := v.marks.Ready; written != nil {
		m.Ready = digestOf(conditionMap(written))
	}
	m.Rerun = v.rerun
	p.family.Close(st.through())
	if st.Found.Resync || !m.Seen {
		m.Resync = NextResync(p.Rules.Spec.Resync, p.Now, !m.Seen)
	}
	m.Seen = true
	// What the only handler that runs for related objects has changed is no change for it; what others have is.
	if len(p.Rules.Relates) == 1 && st.Jobs.AskedBy(p.Rules.Relates) {
		p.related.Foresee(func() *unstructured.Unstructured { return p.foreseen(st) })
	}
	m.Related = p.related.State()
	p.indexes.Keep(true)
	st = p.wind(st)
	if p.Machines.Any() {
		p.Machines.Finished(st.Written, st.Jobs, m)
	}
	if !st.Due.Now && (st.Due.After <= 0 || st.Due.After > breaker.Slow) {
		m.Woken = breaker.Woken{} // the next pass has another reason
	}
	return p.concluded(p.brake(st, v), v)
}

// concluded is the result of a pass that has written its object.
func (p *pass) concluded(st State, v verdict) Result {
	if len(p.Rules.Daemons) > 0 {
		p.tend(st, !v.vanished)
	}
	out := p.result(st, nil)
	out.Written = st.Written
	if !p.Gone { // the key may be that of another object
		out.Stand, out.Stands = p.stand(st, p.Rules.Readers, v.Held), true
	}
	if out.Written != nil && p.Rules.Echoes && len(out.Stand.Open) == 0 && p.rests(st, v) {
		out.Echoes = p.echoes()
	}
	return out
}

// rests reports whether the next pass would find nothing to do in the object as this pass has written it, by the server's answer. In doubt it
// is false: then the event of the write starts a pass.
func (p *pass) rests(st State, v verdict) bool {
	written := st.Written
	if v.vanished || st.Due.Now || p.owes() || p.goes(written) || written.GetGeneration() != p.Object.GetGeneration() {
		return false
	}
	if v.Remove || p.instructed(written) || p.speaks(written) || !p.family.Rests(written) || !p.ledger.Rests(written) {
		return false
	}
	at := st.Draft
	if at.Whole != written {
		at = p.looking(st, written)
	}
	return p.handlersRest(at) && slices.Contains(written.GetFinalizers(), p.Rules.Finalizer) == p.wantsFinalizer(at)
}

// instructed reports whether the annotations of an object ask for a retry or a pause. Somebody else may have written that right before the
// pass, and a watch that lists again shows both writes as one.
func (p *pass) instructed(o *unstructured.Unstructured) bool {
	_, retry := dsl.Path{"metadata", "annotations", p.Rules.Retry}.In(o.Object)
	return retry || p.Pauses.Of(o) != nil
}

// handlersRest reports whether no handler has anything to do in an object as a draft has it.
func (p *pass) handlersRest(at Draft) bool {
	return !slices.ContainsFunc(p.Rules.Readers, func(r book.Handler) bool {
		asks := r.On(dsl.Delete) && !r.NoFinalizer && r.When != nil // each pass asks for the sake of the finalizer
		return asks || p.memory.Filters.Of(r.Handler) != "" || !p.ledger.HandlerRests(r, at.Look, filter.Chooses(r.Handler, at.Current))
	})
}

// goes reports whether the object is gone, or is being deleted before or after the write.
func (p *pass) goes(written *unstructured.Unstructured) bool {
	return p.Gone || p.Deletion != "" || written.GetDeletionTimestamp() != nil
}

// owes reports whether something is remembered for which the next pass runs handlers, or writes.
func (p *pass) owes() bool {
	m := p.memory
	if len(m.Ignored)+len(m.Refused)+len(m.Rerun) > 0 || m.Owes || m.Reads {
		return true
	}
	return m.Halt != nil || m.Troubles.Any() || m.Breaker.Wait(time.Now()) > 0
}

// speaks reports whether an object has conditions that each pass may change: the engine's own, and those of an earlier generation.
func (p *pass) speaks(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(ConditionsOf(o), func(c map[string]any) bool {
		seen, is := c["observedGeneration"].(int64)
		return c["type"] == Failing || c["type"] == PausedCondition || is && seen > 0 && seen < o.GetGeneration()
	})
}

// echoes are what the pass has written its object as, in order.
func (p *pass) echoes() (out []inbox.Echo) {
	for _, o := range p.answers {
		out = append(out, inbox.EchoOf(p.Writer.Shown(o)))
	}
	return slices.Compact(out) // a write that changes nothing makes no version
}

// abandon is the place where a pass over an object gives up: it broke off, or its write has failed. What handlers did is remembered as far as
// nothing of it is lost: those that wanted nothing of the object need not run again, unless they asked for it.
func (p *pass) abandon(st State, err error) Result {
	// No time has passed for handlers that the pass did not come to: the zero time keeps what they asked for. What others asked for in
	// this pass holds also if they are to run once more: the write may have been made, and then they do not.
	p.memory.Again = AlarmAgain(p.memory.Again, st.Jobs, Times{Ended: time.Now()}, false)
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
