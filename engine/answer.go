// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/patch"
)

// correct holds what handlers were to leave behind against what the server made of it: what it dropped or
// rewrote is no news for the handler that wrote it. Where the text says otherwise it is sent again, once.
func (p *pass) correct(ctx context.Context, written *unstructured.Unstructured, marks patch.Marks) patch.Marks {
	before := p.book.Outcomes(p.r.rules.readers)
	if p.patch.Empty() {
		p.rewritten(written, marks.Locked)
	} else {
		p.corrected(written)
	}
	if p.book.Outcomes(p.r.rules.readers) == before || marks.Annotation == "" {
		return marks
	}
	defer func() { p.marked = p.book.Mark(p.r.rules.readers) }()
	if p.memory.stamped {
		return marks // it would be rewritten at the next write, too
	}
	again := patch.Marks{State: p.text}
	p.store(&again)
	if again.Annotation == "" {
		return marks
	}
	again.Locked = true
	result, err := p.send(ctx, written, func(live *unstructured.Unstructured) (*dsl.Patch, patch.Marks) {
		if live != written {
			p.showAll(p.shown(live)) // somebody else wrote
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

// corrected enters what the server made of the changes of this pass's handlers.
func (p *pass) corrected(written *unstructured.Unstructured) {
	foreseen, found := p.sight, book.NewLook(p.shown(written).Object)
	for _, j := range p.jobs {
		if wanted := foreseen.Digest(j.reader.View); j.asks() && wanted != found.Digest(j.reader.View) {
			p.put(j.reader, p.entry(j.reader).Corrected(wanted, found, j.reader))
		}
	}
	p.current, p.sight = p.shown(written), found
}

// rewritten looks whether a write of nothing but the book has changed what handlers look at. Where nobody else
// can have written, the server did, as at each write: that is no news. Otherwise it may have been somebody;
// from then on the book is written to the version alone that the pass has read.
func (p *pass) rewritten(written *unstructured.Unstructured, locked bool) {
	before, found := p.sight, book.NewLook(p.shown(written).Object)
	for _, r := range p.r.rules.readers {
		was := before.Digest(r.View)
		if was == found.Digest(r.View) {
			continue
		}
		if !locked {
			p.memory.stamped = true
			return
		}
		p.put(r, p.entry(r).Corrected(was, found, r))
	}
	p.current, p.sight = p.shown(written), found
}
