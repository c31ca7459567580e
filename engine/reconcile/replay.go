// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
)

// replay applies the handlers' patches to the object after a conflict. A patch is sent only if the handler's view and
// the fields that it writes are unchanged. Otherwise the handler runs again.
func (p *run) replay(st State, live *unstructured.Unstructured, v change) (State, change) {
	was, at := p.alsoFiltered(st.Again(st.Known), st.Filtered...), p.alsoFiltered(p.bare(st, live), st.Filtered...)
	void, moved := false, st.moved(live)
	for _, j := range st.Attempts.Asking() {
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
		p.family.Await(live) // the handlers saw an older version
		st.Due = st.Due.AtOnce()
		st, v = p.settle(st)
	}
	if len(v.marks.Ready) > 0 && p.readyMoved(live) {
		v.marks.Ready = nil
	}
	return st, v
}

// repeats reports whether a handler's patch changes the same fields, from and to the same values, in two drafts; see
// [patch.Edit]. Removed conditions do not count: the managedFields of the object say who set them.
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

// edit returns a handler's changes to a draft.
func (p *run) edit(d Draft, j *Attempt, wants *dsl.Patch) (patch.Edit, error) {
	made, err := p.resolve(d.Current, j, wants)
	if err != nil {
		return patch.Edit{}, err
	}
	laid, _, _, err := patch.Apply(d.Current, made, p.generation(), p.Now)
	return patch.Edit{Before: d.Current.Object, After: laid.Object}, err
}

// resolve returns a handler's patch without transformations; see [Rules.Resolve]. They do not run if no object is
// written.
func (p *run) resolve(o *unstructured.Unstructured, j *Attempt, wants *dsl.Patch) (*dsl.Patch, error) {
	if p.Gone || p.resourceWide() {
		return patch.ResolveMost(nil, wants, p.generation(), p.Now)
	}
	return p.Rules.Resolve(o, j.Reader.ID, wants, p.generation(), p.Now)
}

// bare returns a draft of another version of the object, without changes of handlers.
func (p *run) bare(st State, at *unstructured.Unstructured) Draft {
	out := p.looking(st, at)
	out.Patch = dsl.NewPatch()
	return out
}
