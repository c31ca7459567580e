// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pass

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// write sends what the pass has come to, and returns what it has come to then. An object that is gone is no error.
func (p *pass) write(ctx context.Context, st State, v verdict) (State, verdict, error) {
	if p.Rules.Echoes {
		p.Box.Writing(p.Key)
	}
	var err error
	if p.Gone {
		st, err = p.release(ctx, st, v.marks)
	} else if st, v, err = p.writeFrom(ctx, st, p.family.Base(), v); err != nil && patch.Refused(err) && !st.Patch.Empty() {
		st, v, err = p.blame(ctx, st, err)
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
func (p *pass) writeFrom(ctx context.Context, st State, base *unstructured.Unstructured, v verdict) (State, verdict, error) {
	if !st.Patch.Empty() {
		var err error
		if st, base, err = p.complete(ctx, st, base); err != nil {
			return st, v, err
		}
	}
	seen := p.Object
	var trimmed *unstructured.Unstructured
	st, result, err := p.send(ctx, st, base, func(live *unstructured.Unstructured) (*dsl.Patch, patch.Marks) {
		if live != seen {
			seen = live
			p.published, v = p.replay(p.published, live, v)
		}
		if live != trimmed {
			trimmed = live
			v.marks.Along = p.family.Trim(live)
		}
		p.ledger.Sending(v.marks)
		return p.published.Patch, v.marks
	})
	if err == nil && result != base {
		st, v.marks = p.correct(ctx, st, result, v.marks)
	}
	if err == nil {
		p.memory.Settled = append(p.memory.Settled, st.Patch.Retired...)
	}
	return st, v, err
}

// complete returns the object that a write is worked out from: read, where the cache lacks a part of it that counts, or who set a
// condition.
func (p *pass) complete(ctx context.Context, st State, base *unstructured.Unstructured) (State, *unstructured.Unstructured, error) {
	if len(st.Patch.Retired) == 0 && (base != p.Object || !p.Rules.Blind(st.Patch)) {
		return st, base, nil
	}
	return p.liveWhole(ctx, st)
}

// liveWhole reads all of the object.
func (p *pass) liveWhole(ctx context.Context, st State) (State, *unstructured.Unstructured, error) {
	live, err := p.Writer.Live(ctx, p.Key, p.Object.GetUID())
	if err != nil || st.Entire != nil || p.Writer.Form.Whole() {
		return st, live, err
	}
	st.Entire = live
	for _, j := range st.Jobs {
		j.Blind = j.Saw != "" && st.moved(live)
	}
	return st, live, nil
}

// readWhole reads all of the object before a handler runs, where the last pass found that the cache shows too little.
func (p *pass) readWhole(ctx context.Context, st State) (State, error) {
	if p.Gone || p.resourceWide() {
		return st, nil
	}
	p.memory.Reads = false
	if st.Entire != nil {
		return st, nil
	}
	st, live, err := p.liveWhole(ctx, st)
	if err == nil {
		p.family.Rebase(live)
	}
	return st, err
}

// full returns the object with what those before in the pass want of it, and with what its cache does not hold: that is read
// once, and what the pass writes is worked out from it then. The object is nil where only a part is known and the pass does not write.
func (p *pass) full(ctx context.Context, st State) (State, *unstructured.Unstructured, error) {
	if st.Whole == nil && !p.Writer.Form.Whole() {
		if p.Gone || p.resourceWide() {
			return st, nil, nil
		}
		var err error
		if st, st.Whole, err = p.wholeBase(ctx, st); err != nil {
			return st, nil, err
		}
	}
	full, err := st.Full(p.generation(), p.Now)
	return st, full, err
}

// wholeBase returns the whole object that the pass's write is worked out from.
func (p *pass) wholeBase(ctx context.Context, st State) (State, *unstructured.Unstructured, error) {
	base := p.family.Base()
	if base == p.Object && p.Rules.Spec.Cache != dsl.CacheLive {
		var err error
		if st, base, err = p.liveWhole(ctx, st); err != nil {
			return st, nil, err
		}
		p.family.Rebase(base)
	}
	if st.Entire == nil {
		st.Entire = base
	}
	return st, base, nil
}

// whole is the whole object for a machine, which asks for it while it runs.
type whole struct {
	ctx  context.Context
	pass *pass
}

// wholeFor returns the whole object; nil where the cache holds all of it.
func (p *pass) wholeFor(ctx context.Context) *whole {
	if p.Writer.Form.Whole() {
		return nil
	}
	return &whole{ctx, p}
}

// Object returns it. It may ask the API server.
func (w *whole) Object() (*unstructured.Unstructured, error) {
	st, full, err := w.pass.full(w.ctx, w.pass.published)
	w.pass.publish(st)
	return full, err
}

// refused says on the object that the server does not take what handlers want: waiting alone will not mend that. A server
// that has just started refuses for a moment what it will allow.
func (p *pass) refused(st State, err error) State {
	if p.Host.Covered(err) || apierrors.IsForbidden(err) && !p.memory.Troubles.Has(Itself) {
		return st
	}
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
		st = st.noted(Note{Action: "write", Reason: "WriteRefused", Message: err.Error()})
	}
	return st
}

// send writes what is wished of the object, and returns the object as it is then. While it is under way, the state is the one
// that the pass has published.
func (p *pass) send(ctx context.Context, st State, base *unstructured.Unstructured, wish patch.Wish) (State, *unstructured.Unstructured, error) {
	for _, j := range st.Jobs.Asking() {
		ctx = discreet(ctx, j.Reader)
	}
	target := p.Writer.Target(base, p.generation(), p.Now)
	schemas := p.Writer.Schemas.Load()
	if p.memory.Schemas == schemas {
		target.Ignored = p.memory.Ignored
	}
	target.Client = walked{target.Client, p.walk, &p.answers, base.GetUID(), st.Jobs.Changers(p.family.Writes())}
	target.Wrote = p.wrote
	p.publish(st)
	result, err := p.Writer.Conditions.Write(ctx, target, wish, &p.memory.Owes)
	st = p.published
	p.family.Wrote(result)
	if result.Status || result.Whole {
		st.Written = result.Object
	}
	if err == nil && !st.Patch.Empty() {
		p.memory.Ignored, p.memory.Schemas = result.Ignored, schemas
	}
	if errors.Is(err, patch.ErrGone) {
		st = st.noted(Note{Level: 1, Line: "object is gone; what its handlers want of it is dropped"})
	}
	if len(result.Dropped) > 0 {
		st = st.noted(p.Writer.Dropped(result))
	}
	return st, result.Object, err
}

// wrote makes a state of the object that the pass has written itself the one that later versions are compared with, unless somebody
// else may have written before.
func (p *pass) wrote(from, to *unstructured.Unstructured) {
	if !p.published.moved(from) {
		p.published = p.adopt(p.published, to)
	}
}

// looking is the pass's draft at another state of its object, as the cache shows it.
func (p *pass) looking(st State, at *unstructured.Unstructured) Draft {
	shown := p.Writer.Shown(at)
	return Draft{Patch: st.Patch, Current: shown, Look: st.Look.At(shown.Object), Whole: at}
}

// moved reports whether somebody else may have changed the object since its handlers saw it.
func (st State) moved(live *unstructured.Unstructured) bool {
	return live.GetResourceVersion() != st.Known.GetResourceVersion()
}

// adopt makes a state of the object the one that later versions are compared with.
func (p *pass) adopt(st State, live *unstructured.Unstructured) State {
	if st.Known = p.Writer.Shown(live); !p.Writer.Form.Whole() {
		st.Entire = live
	}
	return st
}

// correct holds what handlers were to leave behind against what the server made of it: what it dropped or
// rewrote is no change for the handler that wrote it. Where the text says otherwise it is sent again, once.
func (p *pass) correct(ctx context.Context, st State, written *unstructured.Unstructured, marks patch.Marks) (State, patch.Marks) {
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
	if !p.ledger.Store(book.Draft{Look: st.Look, Wanted: st.Patch}, &again) {
		return st, marks
	}
	st, result, err := p.send(ctx, st, written, func(live *unstructured.Unstructured) (*dsl.Patch, patch.Marks) {
		if live != written {
			p.published.Draft = p.looking(p.published, live) // somebody else wrote
		}
		return dsl.NewPatch(), again
	})
	if err != nil {
		st = st.noted(Note{Level: 1, Line: "state annotation could not be corrected after a write", Values: []any{"error", err.Error()}})
		return st, marks
	}
	sent := p.ledger.Outcomes()
	if st = p.rewritten(st, result); p.ledger.Outcomes() != sent {
		p.ledger.Stamps()
	}
	marks.State = again.State
	return st, marks
}

// corrected enters what the server made of the changes of this pass's handlers.
func (p *pass) corrected(st State, written *unstructured.Unstructured) State {
	found := p.looking(st, written)
	for _, j := range st.Jobs {
		if wanted := st.Look.Digest(j.Reader.View); j.Asks() && wanted != found.Look.Digest(j.Reader.View) {
			p.ledger.Put(j.Reader, p.ledger.Entry(j.Reader).Corrected(wanted, found.Look, j.Reader))
		}
	}
	st.Draft = found
	return st
}

// rewritten corrects the book if the server has changed the views of handlers, in a write of the book alone.
// No other client can have written in between.
func (p *pass) rewritten(st State, written *unstructured.Unstructured) State {
	found := p.looking(st, written)
	for _, r := range p.Rules.Readers {
		if was := st.Look.Digest(r.View); was != found.Look.Digest(r.View) {
			p.ledger.Put(r, p.ledger.Entry(r).Corrected(was, found.Look, r))
		}
	}
	st.Draft = found
	return st
}
