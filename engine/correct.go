// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/ledger"
	"github.com/handwerk-dev/handwerk/engine/patch"
)

// correct holds what handlers were to leave behind against what the server made of it: what it dropped or
// rewrote is no news for the handler that wrote it. Where the text says otherwise it is sent again, once.
func (p *pass) correct(ctx context.Context, written *unstructured.Unstructured, marks patch.Marks) patch.Marks {
	before := p.ledger.Outcomes()
	if p.patch.Empty() {
		p.rewritten(written, marks.Locked)
	} else {
		p.corrected(written)
	}
	if p.ledger.Outcomes() == before || marks.Annotation == "" {
		return marks
	}
	defer p.ledger.Corrected()
	if p.ledger.Stamped() {
		return marks // it would be rewritten at the next write, too
	}
	var again patch.Marks
	if !p.ledger.Store(ledger.Draft{Look: p.look, Wanted: p.patch}, &again) {
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

// looking is the pass's draft at another state of its object.
func (p *pass) looking(at *unstructured.Unstructured) draft {
	shown := p.shown(at)
	return draft{patch: p.patch, current: shown, look: book.NewLook(shown.Object)}
}

// corrected enters what the server made of the changes of this pass's handlers.
func (p *pass) corrected(written *unstructured.Unstructured) {
	found := p.looking(written)
	for _, j := range p.jobs {
		if wanted := p.look.Digest(j.Reader.View); j.Asks() && wanted != found.look.Digest(j.Reader.View) {
			p.ledger.Put(j.Reader, p.ledger.Entry(j.Reader).Corrected(wanted, found.look, j.Reader))
		}
	}
	p.draft = found
}

// rewritten looks whether a write of nothing but the book has changed what handlers look at. Where nobody else
// can have written, the server did, as at each write: that is no news. Otherwise it may have been somebody;
// from then on the book is written to the version alone that the pass has read.
func (p *pass) rewritten(written *unstructured.Unstructured, locked bool) {
	found := p.looking(written)
	for _, r := range p.r.rules.Readers {
		was := p.look.Digest(r.View)
		if was == found.look.Digest(r.View) {
			continue
		}
		if !locked {
			p.ledger.Stamps()
			return
		}
		p.ledger.Put(r, p.ledger.Entry(r).Corrected(was, found.look, r))
	}
	p.draft = found
}
