// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pass

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// replay lays what handlers want on the object as it is after a conflict. A handler's changes are sent only where its view and the
// fields that it writes are unchanged. Otherwise the handler runs again.
func (p *pass) replay(st State, live *unstructured.Unstructured, v verdict) (State, verdict) {
	was, at := p.alsoFiltered(p.seen(st), st.Filtered...), p.alsoFiltered(p.bare(st, live), st.Filtered...)
	void, moved := false, st.moved(live)
	for _, j := range st.Jobs.Asking() {
		holds := j.Holds(at.Look)
		if moved {
			repeats := p.repeats(j, j.Wants, at, was)
			p.memory.Reads = p.memory.Reads || j.Blind && !repeats
			holds = holds && repeats
			was, _ = was.With(j.Wants, p.generation(), p.Now) // one that fails changes nothing
		}
		if holds {
			if next, err := at.With(j.Wants, p.generation(), p.Now); err == nil {
				at = next
				continue
			}
		}
		void = true
		p.void(j)
	}
	st.Draft = at
	st = p.restate(p.adopt(st, live))
	if void {
		p.family.Await(live) // for what they saw is older
		st.Due = st.Due.AtOnce()
		st, v = p.settle(st)
	}
	if v.marks.Ready != nil && p.readyMoved(live) {
		v.marks.Ready = nil
	}
	return st, v
}

// repeats reports whether a handler's patch changes in one draft only the fields that it changed in an earlier one.
func (p *pass) repeats(j *Job, wants *dsl.Patch, at, was Draft) bool {
	if !at.Repeats(was, wants, p.generation(), p.Now) {
		return false
	}
	if !j.Blind {
		return true
	}
	was.Whole = nil
	return at.Repeats(was, wants, p.generation(), p.Now)
}

// seen returns the draft that the pass's first handler saw, with what the pass itself has written since.
func (p *pass) seen(st State) Draft {
	out := st.Again(st.Known)
	if out.Whole = st.Entire; p.Rules.Spec.Cache == dsl.CacheLive && st.Entire == nil {
		out.Whole = st.Known
	}
	return out
}

// bare returns a draft of the object in another state, without changes of handlers.
func (p *pass) bare(st State, at *unstructured.Unstructured) Draft {
	out := p.looking(st, at)
	if out.Patch = dsl.NewPatch(); p.Writer.Form.Whole() {
		out.Whole = nil
	}
	return out
}
