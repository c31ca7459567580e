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
	"github.com/handwerk-dev/handwerk/engine/reconcile/conditions"
)

// write sends the reconcile's changes, and returns the state and change after the write. If the object is gone, it
// returns no error.
func (p *run) write(ctx context.Context, st State, v change) (State, change, error) {
	if p.Rules.Echoes {
		p.Inbox.BeginWrite(p.Key)
	}
	var err error
	if st, v, err = p.writeFrom(ctx, st, p.family.Base(), v); err != nil && patch.IsRejected(err) && !st.Patch.Empty() {
		st, v, err = p.findRejected(ctx, st, err)
	}
	if errors.Is(err, patch.ErrGone) {
		v.vanished, err = true, nil
	}
	if err != nil {
		st = p.noteRejected(st, err)
	}
	return st, v, err
}

// writeFrom is write, starting from a known state of the object.
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
		v.marks.Annotations = p.family.Trim(target.Object)
		p.progress.Sending(v.marks)
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

// withManagers returns the object from which a write is computed. If conditions are removed, it reads the live object:
// only its managedFields say who set them, and caches lack these.
func (p *run) withManagers(ctx context.Context, st State, base *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if len(st.Patch.Retired) == 0 {
		return base, nil
	}
	return p.Writer.Live(ctx, p.Key, p.Object.GetUID())
}

// noteRejected adds an Event if the server rejects the write, because waiting alone does not fix that. It skips the first
// rejection for a missing right: a server that has just started may reject requests for a moment.
func (p *run) noteRejected(st State, err error) State {
	if p.Host.Covered(err) || apierrors.IsForbidden(err) && !p.memory.Troubles.Has(Itself) {
		return st
	}
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
		st = st.noted(Note{Action: "write", Reason: "WriteRefused", Message: err.Error()})
	}
	return st
}

// target returns the target of the reconcile's writes. Fields that the server ignored are not sent again until the CRD
// changes.
func (p *run) target(st State, base *unstructured.Unstructured) patch.Target {
	if schemas := p.Writer.Schemas.Load(); p.memory.Schemas != schemas {
		p.memory.Ignored, p.memory.Schemas = nil, schemas
	}
	out := p.Writer.Target(base, p.generation(), p.Now)
	out.Ignored = p.memory.Ignored
	out.Client = trailClient{out.Client, p.walk, base.GetUID(), st.Attempts.Changers(p.family.Writes())}
	return out
}

// send sends a patch and marks. After a conflict it sends nothing else: the caller decides again over the live object.
func (p *run) send(ctx context.Context, st State, target patch.Target, wants *dsl.Patch, marks patch.Marks) (State, patch.Result, error) {
	for _, j := range st.Attempts.Asking() {
		ctx = discreet(ctx, j.Reader)
	}
	result, err := p.Writer.Conditions.Write(ctx, target, wants, marks, &p.memory.Owes)
	if result.Object != target.Object && !st.moved(target.Object) {
		st = p.adopt(st, result.Object) // nobody else has written in between
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

// sendMarks sends marks that do not depend on the object, and returns the object after the write.
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

// looking returns the reconcile's draft for another version of its object.
func (p *run) looking(st State, at *unstructured.Unstructured) Draft {
	shown := p.Writer.Shown(at)
	return Draft{Patch: st.Patch, Current: shown, Look: st.Look.At(shown.Object)}
}

// moved reports whether somebody else may have changed the object since its handlers saw it.
func (st State) moved(live *unstructured.Unstructured) bool {
	return live.GetResourceVersion() != st.Known.GetResourceVersion()
}

// adopt makes a version of the object the one that later versions are compared with.
func (p *run) adopt(st State, live *unstructured.Unstructured) State {
	st.Known = p.Writer.Shown(live)
	return st
}

// correct compares the progress with the server's answer: fields that the server dropped or rewrote are no change for
// the handler that wrote them. If the stored text differs from that, it is sent once more.
func (p *run) correct(ctx context.Context, st State, written *unstructured.Unstructured, marks patch.Marks) (State, patch.Marks) {
	before, seen := p.progress.Outcomes(), written
	if len(marks.Ready) > 0 {
		seen = conditions.WithReadyOf(st.Current, written)
	}
	if st.Patch.Empty() {
		st = p.rewritten(st, seen)
	} else {
		st = p.corrected(st, seen)
	}
	if p.progress.Outcomes() == before || marks.Annotation == "" {
		return st, marks
	}
	defer p.progress.Corrected()
	if p.progress.Stamped() {
		return st, marks
	}
	var again patch.Marks
	if !p.progress.Store(progress.Draft{Snapshot: st.Look, Wanted: st.Patch}, &again) {
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
	sent := p.progress.Outcomes()
	if st = p.rewritten(st, result.Object); p.progress.Outcomes() != sent {
		p.progress.Stamps()
	}
	marks.State = again.State
	return st, marks
}

// corrected adjusts the entries of handlers to the server's answer to their changes.
func (p *run) corrected(st State, written *unstructured.Unstructured) State {
	found := p.looking(st, written)
	for _, j := range st.Attempts {
		if wanted := st.Look.Digest(j.Reader.View); j.Asks() && wanted != found.Look.Digest(j.Reader.View) {
			p.progress.Put(j.Reader, p.progress.Entry(j.Reader).Corrected(wanted, found.Look, j.Reader))
		}
	}
	st.Draft = found
	return st
}

// rewritten adjusts the progress if the server has changed the views of handlers in a write of the progress alone. No
// other client can have written in between.
func (p *run) rewritten(st State, written *unstructured.Unstructured) State {
	found := p.looking(st, written)
	for _, r := range p.Rules.Readers {
		if was := st.Look.Digest(r.View); was != found.Look.Digest(r.View) {
			p.progress.Put(r, p.progress.Entry(r).Corrected(was, found.Look, r))
		}
	}
	st.Draft = found
	return st
}
