// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// write sends what the reconcile has come to, and returns what it has come to then. An object that is gone is no error.
func (p *run) write(ctx context.Context, st State, v change) (State, change, error) {
	if p.Rules.Echoes {
		p.Inbox.Writing(p.Key)
	}
	var err error
	if p.Gone {
		st, err = p.release(ctx, st, v.marks)
	} else if st, v, err = p.writeFrom(ctx, st, p.family.Base(), v); err != nil && patch.Refused(err) && !st.Patch.Empty() {
		st, v, err = p.findRejected(ctx, st, err)
	}
	if errors.Is(err, patch.ErrGone) {
		v.vanished, err = true, nil
	}
	if err != nil {
		st = p.refused(st, err)
	}
	return st, v, err
}

// writeFrom is write for an object as it is known.
func (p *run) writeFrom(ctx context.Context, st State, base *unstructured.Unstructured, v change) (State, change, error) {
	if !st.Patch.Empty() {
		var err error
		if base, err = p.withManagers(ctx, st, base); err != nil {
			return st, v, err
		}
	}
	target := p.target(st, base)
	if base != p.Object {
		st, v = p.replay(st, base, v)
	}
	var result patch.Result
	for {
		v.marks.Along = p.family.Trim(target.Object)
		p.ledger.Sending(v.marks)
		var err error
		if st, result, err = p.send(ctx, st, target, st.Patch, v.marks); err != nil {
			return st, v, err
		}
		if result.Conflict == nil {
			break
		}
		target = target.After(result)
		st, v = p.replay(st, target.Object, v)
	}
	if result.Object != base {
		st, v.marks = p.correct(ctx, st, result.Object, v.marks)
	}
	p.memory.Settled = append(p.memory.Settled, st.Patch.Retired...)
	return st, v, nil
}

// withManagers returns the object that a write is worked out from. It is read if conditions are to be retired: managedFields, which
// caches lack, say who set them.
func (p *run) withManagers(ctx context.Context, st State, base *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if len(st.Patch.Retired) == 0 {
		return base, nil
	}
	return p.Writer.Live(ctx, p.Key, p.Object.GetUID())
}

// refused says on the object that the server does not take what handlers want: waiting alone will not mend that. A server
// that has just started refuses for a moment what it will allow.
func (p *run) refused(st State, err error) State {
	if p.Host.Covered(err) || apierrors.IsForbidden(err) && !p.memory.Troubles.Has(Itself) {
		return st
	}
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
		st = st.noted(Note{Action: "write", Reason: "WriteRefused", Message: err.Error()})
	}
	return st
}

// target is the object as the target of a write of the reconcile. What the server ignored counts until the CRD changes.
func (p *run) target(st State, base *unstructured.Unstructured) patch.Target {
	if schemas := p.Writer.Schemas.Load(); p.memory.Schemas != schemas {
		p.memory.Ignored, p.memory.Schemas = nil, schemas
	}
	out := p.Writer.Target(base, p.generation(), p.Now)
	out.Ignored = p.memory.Ignored
	out.Client = walked{out.Client, p.walk, base.GetUID(), st.Jobs.Changers(p.family.Writes())}
	return out
}

// send sends what is wanted of the object. After a conflict nothing more is sent: the caller decides again over the live object.
func (p *run) send(ctx context.Context, st State, target patch.Target, wants *dsl.Patch, marks patch.Marks) (State, patch.Result, error) {
	for _, j := range st.Jobs.Asking() {
		ctx = discreet(ctx, j.Reader)
	}
	result, err := p.Writer.Conditions.Write(ctx, target, wants, marks, &p.memory.Owes)
	if result.Object != target.Object && !st.moved(target.Object) {
		st = p.adopt(st, result.Object) // nobody else has written before
	}
	if result.Conflict != nil {
		return st, result, nil
	}
	p.family.Wrote(result)
	st.Written = append(st.Written, result.Written...)
	if err == nil && !st.Patch.Empty() {
		p.memory.Ignored = result.Ignored
	}
	if errors.Is(err, patch.ErrGone) {
		st = st.noted(Note{Level: 1, Line: "object is gone; what its handlers want of it is dropped"})
	}
	if len(result.Dropped) > 0 {
		st = st.noted(p.Writer.Dropped(result))
	}
	return st, result, err
}

// sendMarks sends marks that do not depend on the object, and returns the object as it is then.
func (p *run) sendMarks(ctx context.Context, st State, base *unstructured.Unstructured, marks patch.Marks) (State, *unstructured.Unstructured, error) {
	for target := p.target(st, base); ; {
		var result patch.Result
		var err error
		if st, result, err = p.send(ctx, st, target, dsl.NewPatch(), marks); err != nil || result.Conflict == nil {
			return st, result.Object, err
		}
		target = target.After(result)
	}
}

// looking is the reconcile's draft at another state of its object, as the cache shows it.
func (p *run) looking(st State, at *unstructured.Unstructured) Draft {
	shown := p.Writer.Shown(at)
	return Draft{Patch: st.Patch, Current: shown, Look: st.Look.At(shown.Object)}
}

// moved reports whether somebody else may have changed the object since its handlers saw it.
func (st State) moved(live *unstructured.Unstructured) bool {
	return live.GetResourceVersion() != st.Known.GetResourceVersion()
}

// adopt makes a state of the object the one that later versions are compared with.
func (p *run) adopt(st State, live *unstructured.Unstructured) State {
	st.Known = p.Writer.Shown(live)
	return st
}

// correct holds what handlers were to leave behind against what the server made of it: what it dropped or
// rewrote is no change for the handler that wrote it. Where the text says otherwise it is sent again, once.
func (p *run) correct(ctx context.Context, st State, written *unstructured.Unstructured, marks patch.Marks) (State, patch.Marks) {
	before, seen := p.ledger.Outcomes(), written
	if marks.Ready != nil {
		seen = besideReady(written, st.Current)
	}
	if st.Patch.Empty() {
		st = p.rewritten(st, seen)
	} else {
		st = p.corrected(st, seen)
	}
	if p.ledger.Outcomes() == before || marks.Annotation == "" {
		return st, marks
	}
	defer p.ledger.Corrected()
	if p.ledger.Stamped() {
		return st, marks
	}
	var again patch.Marks
	if !p.ledger.Store(progress.Draft{Look: st.Look, Wanted: st.Patch}, &again) {
		return st, marks
	}
	target := p.target(st, written)
	st, result, err := p.send(ctx, st, target, dsl.NewPatch(), again)
	for err == nil && result.Conflict != nil {
		target = target.After(result)
		st.Draft = p.looking(st, target.Object) // somebody else wrote
		st, result, err = p.send(ctx, st, target, dsl.NewPatch(), again)
	}
	if err != nil {
		st = st.noted(Note{Level: 1, Line: "state annotation could not be corrected after a write", Values: []any{"error", err.Error()}})
		return st, marks
	}
	sent := p.ledger.Outcomes()
	if st = p.rewritten(st, result.Object); p.ledger.Outcomes() != sent {
		p.ledger.Stamps()
	}
	marks.State = again.State
	return st, marks
}

// corrected enters what the server made of the changes of this reconcile's handlers.
func (p *run) corrected(st State, written *unstructured.Unstructured) State {
	found := p.looking(st, written)
	for _, j := range st.Jobs {
		if wanted := st.Look.Digest(j.Reader.View); j.Asks() && wanted != found.Look.Digest(j.Reader.View) {
			p.ledger.Put(j.Reader, p.ledger.Entry(j.Reader).Corrected(wanted, found.Look, j.Reader))
		}
	}
	st.Draft = found
	return st
}

// rewritten corrects the progress if the server has changed the views of handlers, in a write of the progress alone.
// No other client can have written in between.
func (p *run) rewritten(st State, written *unstructured.Unstructured) State {
	found := p.looking(st, written)
	for _, r := range p.Rules.Readers {
		if was := st.Look.Digest(r.View); was != found.Look.Digest(r.View) {
			p.ledger.Put(r, p.ledger.Entry(r).Corrected(was, found.Look, r))
		}
	}
	st.Draft = found
	return st
}
