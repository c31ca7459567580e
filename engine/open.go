// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
)

// vanished is the moment of a deletion of an object that nobody has seen being deleted.
const vanished = "gone"

// deletionOf is the moment at which an object was deleted, by which deletions are told apart; empty while
// it lives. Who deletes it once more with a shorter grace period moves the timestamp by the difference of
// the periods, and that moment only where the timestamp would be past: then it is the present one
// (BeforeDelete in k8s.io/apiserver).
func deletionOf(o *unstructured.Unstructured, gone bool) string {
	switch at := o.GetDeletionTimestamp(); {
	case at != nil:
		var grace int64
		if seconds := o.GetDeletionGracePeriodSeconds(); seconds != nil {
			grace = *seconds
		}
		return at.Add(-time.Duration(grace) * time.Second).UTC().Format(time.RFC3339)
	case gone:
		return vanished
	}
	return ""
}

// moves reports whether a deletion that this process has seen begin is at another moment now: nobody takes
// back a deletion, so an object that was being deleted still is. One that is out of sight alone is another
// matter.
func moves(known, now string) bool {
	return known != now && known != "" && known != vanished && now != "" && now != vanished
}

// open opens the object's book: as this process remembers it, or as it was stored when the process sees
// the object for the first time.
//
// Memory wins over a text that this process did not write, and over one that it did: it knows more. The
// exception is a text that was sent, and whose answer was lost on the way.
func (p *pass) open() book.Book {
	m := p.memory
	if m.sent != nil && m.sent.Text() == p.text {
		m.book, m.known, m.generation, m.sent = *m.sent, true, p.generation, nil
		m.mark, m.outcomes = m.book.Mark(p.r.rules.readers), m.book.Outcomes(p.r.rules.readers)
	}
	if moves(m.deletion, p.deletion) {
		m.book = m.book.Moved(m.deletion, p.deletion)
	}
	m.deletion = p.deletion
	switch {
	case m.known && m.generation != p.generation:
		return m.book // what was stored elsewhere is not stored here
	case m.known:
		p.stored, p.outcomes = m.mark, m.outcomes
		return m.book
	}
	b := p.load()
	p.stored, p.outcomes = b.Mark(p.r.rules.readers), b.Outcomes(p.r.rules.readers)
	return b
}

// load reads the book from the object.
func (p *pass) load() book.Book {
	b, err := book.Load(p.text, p.object.GetUID(), p.vouched)
	if err != nil {
		p.log().Error(err, "state annotation is not readable; the object is handled as a new one")
	}
	b = b.Meet(p.r.rules.readers, book.Moment{
		Look: p.sight, Generation: p.object.GetGeneration(), Partial: p.partial(), Deletion: p.deletion,
	})
	if p.generation {
		b = p.byGeneration(b)
	}
	return b
}

// partial reports whether the cache shows no more than a part of the object.
func (p *pass) partial() bool { return p.r.spec.Cache == dsl.CacheMetadata || len(p.r.spec.Keep) > 0 }

// byGeneration takes from status.observedGeneration what was handled, unless the text knows more: it is there when
// not all have handled what there is.
func (p *pass) byGeneration(b book.Book) book.Book {
	observed, _, _ := unstructured.NestedInt64(p.object.Object, "status", "observedGeneration")
	if b.Known && b.Text() != "" && observed != p.object.GetGeneration() {
		return b
	}
	b.Known = observed > 0
	for _, r := range p.r.rules.readers {
		if !r.Stores() {
			continue
		}
		e, _ := b.Entry(r.ID)
		b = b.With(r.ID, e.Observed(r, p.sight, observed, p.object.GetGeneration()))
	}
	return b
}

// vouched reports whether this operator wrote the state annotation, by managedFields.
func (p *pass) vouched() bool {
	key := "f:" + p.r.engine.op.StateAnnotation()
	return slices.ContainsFunc(p.object.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		if m.Manager != p.r.engine.op.Name || m.Subresource != "" || m.FieldsV1 == nil || !strings.Contains(m.FieldsV1.GetRawString(), key) {
			return false
		}
		var fields struct {
			Metadata struct {
				Annotations map[string]json.RawMessage `json:"f:annotations"`
			} `json:"f:metadata"`
		}
		err := json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields)
		_, owned := fields.Metadata.Annotations[key]
		return err == nil && owned
	})
}

// intact reports whether the object has the text that this process knows of. One that is none of this
// object's does not matter where there is nothing to store, nor one that was replaced once and is there
// again: somebody who copies it there is not fought with.
func (p *pass) intact() bool {
	return p.text == p.book.Text() || p.stored == "" || p.text != "" && p.text == p.memory.foreign
}

// isNew reports whether the object is new, and not found again by a new process.
func (p *pass) isNew() bool {
	if p.r.rules.stores {
		return !p.book.Known
	}
	return p.fresh
}

// facts are what a handler's entry is held against.
func (p *pass) facts(r book.Reader) book.Facts {
	return book.Facts{
		Deletion: p.deletion, Now: p.sight.Digest(r.View), Present: p.sight.Seen(r.View),
		First: !p.memory.seen, New: p.isNew(),
	}
}
