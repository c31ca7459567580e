// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
)

// replay lays what handlers want on the object as it is after a conflict. A handler's changes are sent only where its view and the
// fields that it writes are unchanged. Otherwise the handler runs again.
func (p *run) replay(st State, live *unstructured.Unstructured, v change) (State, change) {
	was, at := p.alsoFiltered(st.Again(st.Known), st.Filtered...), p.alsoFiltered(p.bare(st, live), st.Filtered...)
	void, moved := false, st.moved(live)
	for _, j := range st.Jobs.Asking() {
		holds := j.Holds(at.Look)
		if moved {
			holds = holds && p.repeats(j, j.Wants, at, was)
			if before, err := p.resolve(was.Current, j, j.Wants); err == nil {
				was = was.With(before, p.generation(), p.Now)
			}
		}
		if holds {
			if now, err := p.resolve(at.Current, j, j.Wants); err == nil {
				at = at.With(now, p.generation(), p.Now)
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

// repeats reports whether a handler's patch changes in one draft only the fields that it changed in an earlier one, from the same
// values to the same values; see [patch.Edit]. Conditions to take away do not count: the managedFields of the object that has them
// say who set them.
func (p *run) repeats(j *Attempt, wants *dsl.Patch, at, was Draft) bool {
	bare := *wants
	bare.Retired = nil
	now, err := p.edit(at, j, &bare)
	if err != nil {
		return false
	}
	before, err := p.edit(was, j, &bare)
	return err == nil && now.Repeats(before)
}

// edit returns what a handler's patch changes in a draft.
func (p *run) edit(d Draft, j *Attempt, wants *dsl.Patch) (patch.Edit, error) {
	made, err := p.resolve(d.Current, j, wants)
	if err != nil {
		return patch.Edit{}, err
	}
	laid, _, _, err := patch.Lay(d.Current, made, p.generation(), p.Now)
	return patch.Edit{Before: d.Current.Object, After: laid.Object}, err
}

// resolve returns a handler's patch without transformations; see [Rules.Resolve]. If no object is written, they do not run.
func (p *run) resolve(o *unstructured.Unstructured, j *Attempt, wants *dsl.Patch) (*dsl.Patch, error) {
	if p.Gone || p.resourceWide() {
		return patch.ResolveMost(nil, wants, p.generation(), p.Now)
	}
	return p.Rules.Resolve(o, j.Reader.ID, wants, p.generation(), p.Now)
}

// bare returns a draft of the object in another state, without changes of handlers.
func (p *run) bare(st State, at *unstructured.Unstructured) Draft {
	out := p.looking(st, at)
	out.Patch = dsl.NewPatch()
	return out
}
