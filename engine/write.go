// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/pass"
	"github.com/handwerk-dev/handwerk/engine/patch"
	"github.com/handwerk-dev/handwerk/engine/transport"
)

// write sends what the pass has come to, and returns what it has come to then.
func (p *run) write(ctx context.Context, s verdict) (verdict, error) {
	base, along := p.family.Trim()
	s.marks.Along = along
	if p.gone {
		return s, p.releaseObject(ctx, s.marks)
	}
	s, err := p.writeFrom(ctx, base, s)
	if err != nil && patch.Refused(err) && !p.Patch.Empty() {
		return p.blame(ctx, err)
	}
	return s, err
}

// complete returns the object that a write is worked out from: read, where the cache lacks a part of it, or who set a condition.
func (p *run) complete(ctx context.Context, base *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if len(p.Patch.Retired) == 0 && (!p.r.rules.Ledger.Partial || base != p.object) {
		return base, nil
	}
	return p.liveWhole(ctx)
}

// liveWhole reads all of the object.
func (p *run) liveWhole(ctx context.Context) (*unstructured.Unstructured, error) {
	live, err := p.r.live(ctx, p.key, p.object.GetUID())
	if err != nil || p.entire != nil || p.r.form.Whole() {
		return live, err
	}
	p.entire = live
	for _, j := range p.jobs {
		j.Blind = j.Saw != "" && p.moved(live)
	}
	return live, nil
}

// readWhole reads all of the object before a handler runs, where the last pass found that the cache shows too little.
func (p *run) readWhole(ctx context.Context) error {
	if !p.memory.Reads || p.gone || p.resourceWide() {
		return nil
	}
	p.memory.Reads = false
	if p.entire != nil {
		return nil
	}
	live, err := p.liveWhole(ctx)
	if err == nil {
		p.family.Rebase(live)
	}
	return err
}

// full returns the object with what those before in the pass want of it, and with what its cache does not hold: that is read
// once, and what the pass writes is worked out from it then. It returns nil where only a part is known, and nobody writes.
func (p *run) full(ctx context.Context) (_ *unstructured.Unstructured, err error) {
	if p.Whole == nil && !p.r.form.Whole() {
		if p.gone || p.resourceWide() {
			return nil, nil
		}
		if p.Whole, err = p.wholeBase(ctx); err != nil {
			return nil, err
		}
	}
	return p.Full(p.r.own.Resource().Generation(p.object), p.now)
}

// wholeBase returns the whole object that the pass's write is worked out from.
func (p *run) wholeBase(ctx context.Context) (base *unstructured.Unstructured, err error) {
	if base = p.family.Base(); base == p.object && p.r.spec.Cache != dsl.CacheLive {
		if base, err = p.liveWhole(ctx); err != nil {
			return nil, err
		}
		p.family.Rebase(base)
	}
	if p.entire == nil {
		p.entire = base
	}
	return base, nil
}

// fuller is full, nil where the cache holds all of the object.
func (p *run) fuller(ctx context.Context) func() (*unstructured.Unstructured, error) {
	if p.r.form.Whole() {
		return nil
	}
	return func() (*unstructured.Unstructured, error) { return p.full(ctx) }
}

// live reads an object of which something is wanted. The error is patch.ErrGone where it is there no more.
func (r *resource) live(ctx context.Context, key cache.ObjectName, uid types.UID) (*unstructured.Unstructured, error) {
	live, err := r.engine.reader(ctx, r.own.Resource().GVR, key)
	if err != nil {
		return nil, fmt.Errorf("reading object before it is written: %w", err)
	}
	if live == nil || live.GetUID() != uid {
		return nil, patch.ErrGone
	}
	return live, nil
}

// writeFrom is write for an object as it is known.
func (p *run) writeFrom(ctx context.Context, base *unstructured.Unstructured, s verdict) (_ verdict, err error) {
	if !p.Patch.Empty() {
		if base, err = p.complete(ctx, base); err != nil {
			return s, err
		}
	}
	p.ledger.Sending(s.marks)
	seen := p.object
	result, err := p.send(ctx, base, func(live *unstructured.Unstructured) (*dsl.Patch, patch.Marks) {
		if live != seen {
			seen, s = live, p.replay(live, s)
			if s.marks.Ready != nil && p.readyMoved(live) {
				s.marks.Ready = nil
			}
		}
		// What handlers foresaw is held against the answer, which is to have nobody else's changes in it.
		s.marks.Locked = s.marks.Locked || !p.Patch.Empty()
		return p.Patch, s.marks
	})
	if err == nil && result != base {
		s.marks = p.correct(ctx, result, s.marks)
	}
	if err == nil {
		p.memory.Settled = append(p.memory.Settled, p.Patch.Retired...)
	}
	return s, err
}

// replay lays what handlers want on the object as it is meanwhile. A handler's changes are sent only where its view and the
// fields that it writes are unchanged. Otherwise the handler runs again.
func (p *run) replay(live *unstructured.Unstructured, s verdict) verdict {
	was, at, generation := p.alsoFiltered(p.seen(), p.filtered...), p.alsoFiltered(p.bare(live), p.filtered...), p.r.own.Resource().Generation(p.object)
	void, moved := false, p.moved(live)
	for _, j := range p.jobs.Asking() {
		holds := j.Holds(at.Look)
		if moved {
			repeats := p.repeats(j, j.Wants, at, was)
			p.memory.Reads = p.memory.Reads || j.Blind && !repeats
			holds = holds && repeats
			was, _ = was.With(j.Wants, generation, p.now) // one that fails changes nothing
		}
		if holds {
			if next, err := at.With(j.Wants, generation, p.now); err == nil {
				at = next
				continue
			}
		}
		void = true
		p.void(j)
	}
	p.show(at)
	p.adopt(live)
	p.restate()
	if !void {
		return s
	}
	p.family.Await(live) // for what they saw is older
	p.next = p.next.AtOnce()
	along := s.marks.Along
	s = p.settle()
	s.marks.Along = along
	return s
}

// repeats reports whether a handler's patch changes in one draft only the fields that it changed in an earlier one.
func (p *run) repeats(j *pass.Job, wants *dsl.Patch, at, was pass.Draft) bool {
	generation := p.r.own.Resource().Generation(p.object)
	if !at.Repeats(was, wants, generation, p.now) {
		return false
	}
	if !j.Blind {
		return true
	}
	was.Whole = nil
	return at.Repeats(was, wants, generation, p.now)
}

// seen returns the draft that the pass's first handler saw, with what the pass itself has written since.
func (p *run) seen() pass.Draft {
	out := pass.DraftOf(p.known)
	if out.Whole = p.entire; p.r.spec.Cache == dsl.CacheLive && p.entire == nil {
		out.Whole = p.known
	}
	return out
}

// bare returns a draft of the object in another state, without changes of handlers.
func (p *run) bare(at *unstructured.Unstructured) pass.Draft {
	out := p.looking(at)
	if out.Patch = dsl.NewPatch(); p.r.form.Whole() {
		out.Whole = nil
	}
	return out
}

// moved reports whether somebody else may have changed the object since its handlers saw it.
func (p *run) moved(live *unstructured.Unstructured) bool {
	return live.GetResourceVersion() != p.known.GetResourceVersion()
}

// adopt makes a state of the object the one that later versions are compared with.
func (p *run) adopt(live *unstructured.Unstructured) {
	if p.known = p.r.shown(live); !p.r.form.Whole() {
		p.entire = live
	}
}

// refused says on the object that the server does not take what handlers want: waiting alone will not mend that. A server
// that has just started refuses for a moment what it will allow.
func (p *run) refused(err error) {
	if p.r.engine.outages.Covers(err) || apierrors.IsForbidden(err) && !p.memory.Troubles.Has(pass.Itself) {
		return
	}
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
		p.r.engine.events.Warn(p.object, "write", "WriteRefused", err.Error())
	}
}

func (p *run) send(ctx context.Context, base *unstructured.Unstructured, wish patch.Wish) (*unstructured.Unstructured, error) {
	for _, j := range p.jobs.Asking() {
		ctx = discreet(ctx, j.Reader)
	}
	target := p.r.target(base, p.r.own.Resource().Generation(p.object), p.now)
	schemas := p.r.schemas.Load()
	if p.memory.Schemas == schemas {
		target.Ignored = p.memory.Ignored
	}
	target.Client = walked{target.Client, p.walk, base.GetUID(), p.jobs.Changers(p.family.Writes())}
	target.Wrote = func(from, to *unstructured.Unstructured) {
		if !p.moved(from) {
			p.adopt(to)
		}
	}
	result, err := p.r.conditions.Write(ctx, target, wish, &p.memory.Owes)
	p.family.Wrote(result)
	if result.Status || result.Whole {
		p.left = result.Object
	}
	if err == nil && !p.Patch.Empty() {
		p.memory.Ignored, p.memory.Schemas = result.Ignored, schemas
	}
	if errors.Is(err, patch.ErrGone) {
		p.log().V(1).Info("object is gone; what its handlers want of it is dropped")
	}
	p.r.dropped(p.log, result)
	return result.Object, err
}

// target is an object of the resource to write to, for handlers that saw it in a generation.
func (r *resource) target(base *unstructured.Unstructured, generation int64, now time.Time) patch.Target {
	served := r.own.Resource()
	return patch.Target{
		Client: transport.Handled{Clients: r.engine.clients, Access: r.engine.reach(served.GVR, base.GetNamespace()), GVR: served.GVR, Namespace: base.GetNamespace()}, Object: base, Resource: served.GVR.GroupResource(),
		Subresource: served.Status, Manager: r.engine.op.Name, Earlier: r.rules.Managers, Prefix: r.rules.Prefix, Generation: generation, Now: now,
		Counts: r.own.KeepsGeneration() && r.rules.Ledger.Stores,
	}
}

// dropped says which fields the server did not keep.
func (r *resource) dropped(log func() logr.Logger, result patch.Result) {
	if len(result.Dropped) > 0 {
		r.engine.feeds.WantCRDs() // should the schema get them, they are sent again
		log().Info("the API server dropped fields that its schema does not have", logmark.Warning, true, "fields", fmt.Sprint(result.Dropped))
	}
}

// correct holds what handlers were to leave behind against what the server made of it: what it dropped or
// rewrote is no news for the handler that wrote it. Where the text says otherwise it is sent again, once.
func (p *run) correct(ctx context.Context, written *unstructured.Unstructured, marks patch.Marks) patch.Marks {
	before, seen := p.ledger.Outcomes(), written
	if marks.Ready != nil {
		seen = p.besideReady(written)
	}
	if p.Patch.Empty() {
		p.rewritten(seen, marks.Locked)
	} else {
		p.corrected(seen)
	}
	if p.ledger.Outcomes() == before || marks.Annotation == "" {
		return marks
	}
	defer p.ledger.Corrected()
	if p.ledger.Stamped() {
		return marks // it would be rewritten at the next write, too
	}
	var again patch.Marks
	if !p.ledger.Store(book.Draft{Look: p.Look, Wanted: p.Patch}, &again) {
		return marks
	}
	again.Locked = true
	result, err := p.send(ctx, written, func(live *unstructured.Unstructured) (*dsl.Patch, patch.Marks) {
		if live != written {
			p.show(p.looking(live)) // somebody else wrote
		}
		return dsl.NewPatch(), again
	})
	if err != nil {
		p.log().V(1).Info("what the server made of a write could not be stored", "error", err.Error())
		return marks
	}
	p.rewritten(result, true)
	marks.State = again.State
	return marks
}

// looking is the pass's draft at another state of its object, as the cache shows it.
func (p *run) looking(at *unstructured.Unstructured) pass.Draft {
	shown := p.r.shown(at)
	return pass.Draft{Patch: p.Patch, Current: shown, Look: book.NewLook(shown.Object), Whole: at}
}

// corrected enters what the server made of the changes of this pass's handlers.
func (p *run) corrected(written *unstructured.Unstructured) {
	found := p.looking(written)
	for _, j := range p.jobs {
		if wanted := p.Look.Digest(j.Reader.View); j.Asks() && wanted != found.Look.Digest(j.Reader.View) {
			p.ledger.Put(j.Reader, p.ledger.Entry(j.Reader).Corrected(wanted, found.Look, j.Reader))
		}
	}
	p.Draft = found
}

// rewritten looks whether a write of nothing but the book has changed what handlers look at. Where nobody else
// can have written, the server did, as at each write: that is no news. Otherwise it may have been somebody;
// from then on the book is written to the version alone that the pass has read.
func (p *run) rewritten(written *unstructured.Unstructured, locked bool) {
	found := p.looking(written)
	for _, r := range p.r.rules.Readers {
		was := p.Look.Digest(r.View)
		if was == found.Look.Digest(r.View) {
			continue
		}
		if !locked {
			p.ledger.Stamps()
			return
		}
		p.ledger.Put(r, p.ledger.Entry(r).Corrected(was, found.Look, r))
	}
	p.Draft = found
}
