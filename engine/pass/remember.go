// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pass

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/breaker"
)

// remember keeps what the pass worked out, after its write, and returns the result.
func (p *pass) remember(st State, v verdict) Result {
	m := p.memory
	p.ledger.Keep(v.marks)
	if written := v.marks.Ready; written != nil {
		m.Ready = digestOf(conditionMap(written))
	}
	m.Rerun = v.rerun
	p.family.Close(st.Jobs.Through())
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
	st = p.brake(st, v)
	if len(p.Rules.Daemons) > 0 {
		p.tend(st, !v.vanished)
	}
	out := p.result(st, nil)
	out.Written = st.Written
	if !p.Gone { // the key may be that of another object
		out.Stand, out.Stands = p.stand(st, p.Rules.Readers, v.Held), true
	}
	return out
}

// abandon is the place where a pass over an object gives up: it broke off, or its write has failed. What handlers did is remembered as far as
// nothing of it is lost: those that wanted nothing of the object need not run again, unless they asked for it.
func (p *pass) abandon(st State, err error) Result {
	for _, j := range st.Jobs.Asking() {
		p.void(j)
	}
	p.ledger.Abandon()
	// No time has passed for handlers that the pass did not come to, or that run once more: the zero time keeps what they asked for.
	p.memory.Again = AlarmAgain(p.memory.Again, st.Jobs, Times{Ended: time.Now()}, false)
	if m := p.memory; p.Deletion == "" {
		late := st.Jobs.Rerun(p.Rules.Readers, p.family.Writes())
		late = append(late, p.family.Leaving()...)
		m.Rerun = slices.Compact(slices.Sorted(slices.Values(append(m.Rerun, late...))))
	}
	return p.result(st, err)
}
