// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
)

// dryRun sends a handler's changes alone if the server rejected them the last time, so that later handlers do not see
// changes that are never written. It returns the error of another rejection.
func (p *run) dryRun(ctx context.Context, st State, j *Attempt) (State, error) {
	base, err := p.withManagers(ctx, st, p.family.Base())
	if err != nil {
		return st, nil // the reconcile's own write fails in the same way
	}
	p.family.Rebase(base)
	if st, err = p.alone(ctx, st, j); patch.IsRejected(err) {
		without := st.Again(p.Object)
		for _, other := range st.Attempts {
			if other != j && other.Wants != nil {
				st, without = p.also(st, without, other)
			}
		}
		st.Draft = without
		return st, err
	}
	if err == nil {
		delete(p.memory.Rejected, j.Reader.ID)
	}
	return st, nil
}

// alone sends one handler's changes. If somebody else has changed what the handler looks at or writes, it sends nothing:
// the reconcile's own write handles that.
func (p *run) alone(ctx context.Context, st State, j *Attempt) (State, error) {
	for target := p.target(st, p.family.Base()); ; {
		wants, marks, ready := p.wantsAlone(st, target.Object, j)
		var result patch.Result
		var err error
		if st, result, err = p.send(ctx, st, target, wants, marks); err != nil {
			return st, err
		}
		if result.Conflict != nil {
			target = target.After(result)
			continue
		}
		if p.family.Rebase(result.Object); ready {
			j.Saw = p.looking(st, result.Object).Look.Digest(j.Reader.View) // the handler's own changes are no trigger for it
		}
		return st, nil
	}
}

// wantsAlone returns one handler's changes for a version of the object. They are empty, and not ready, if somebody else
// has changed what the handler looks at or writes.
func (p *run) wantsAlone(st State, live *unstructured.Unstructured, j *Attempt) (wants *dsl.Patch, marks patch.Marks, ready bool) {
	wishes := j.Machine.Wishes(j.Wants)
	at := p.bare(st, live)
	holds := !st.moved(live) || j.Holds(at.Look) && p.repeats(j, wishes, at, st.Again(st.Known))
	if !holds {
		return dsl.NewPatch(), marks, false
	}
	wants, err := p.resolve(at.Current, j, wishes)
	if err != nil {
		return dsl.NewPatch(), marks, false
	}
	return wants, patch.Marks{Finalizer: p.Rules.Finalizer, Earlier: p.Rules.Earlier}, true
}

// also adds another handler's changes to a draft. If that fails, the handler runs again.
func (p *run) also(st State, at Draft, j *Attempt) (State, Draft) {
	made, err := p.resolve(at.Current, j, j.Wants)
	if err != nil {
		p.void(j)
		st.Due = st.Due.AtOnce()
		return st, at
	}
	return st, at.With(made, p.generation(), p.Now)
}

// findRejected finds the handlers whose changes the server rejects, by sending the changes of each alone. These handlers
// have failed. The changes of others, and their progress, are written.
func (p *run) findRejected(ctx context.Context, st State, said error) (State, change, error) {
	wanting := st.Attempts.Asking()
	base, err := p.withManagers(ctx, st, p.family.Base())
	if err != nil {
		return st, change{}, err
	}
	p.family.Rebase(base)
	st.Draft = p.alsoFiltered(st.Again(st.Known), st.Filtered...)
	for _, j := range wanting {
		err := said
		if len(wanting) > 1 {
			st, err = p.alone(ctx, st, j)
		}
		switch {
		case err == nil:
			st, st.Draft = p.also(st, st.Draft, j)
		case patch.IsRejected(err):
			st, err = p.fault(ctx, st, j, err)
		}
		if err != nil {
			return st, change{}, err
		}
	}
	st, v := p.settle(st)
	return p.writeFrom(ctx, st, p.family.Base(), v)
}

// fault makes an attempt fail, because the server rejects its changes. For a machine, one of its actions fails, and
// another attempt decides what follows. It returns an error if the reconcile must end.
func (p *run) fault(ctx context.Context, st State, j *Attempt, err error) (State, error) {
	defer p.memory.Reject(j.Reader.ID)
	p.memory.Reject(j.Reader.ID) // the changes of the other attempt are sent alone
	j.Wants, j.Record, j.Rejected = nil, j.Entry.Try, !j.Machine.Blame(err)
	if !j.Rejected {
		return p.attempt(ctx, st, j)
	}
	st = p.record(st, j, fmt.Errorf("changing the object: %w", err), 0)
	e := j.Entry
	e.Try = j.Record
	p.progress.Put(j.Reader, e.End(j.Reader.View, j.Saw, st.Look.Kept(j.Reader.View)))
	return st, nil
}
