// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/binary"
	"time"

	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
)

// textMost bounds the text of an error or a detail, in bytes.
const textMost = 200

// Reconcile is a recorded reconcile.
type Reconcile struct {
	Moment
	// More counts later reconciles with the same record, the latest at a time.
	More   int
	Latest time.Time
	// Woken are the changes that woke it, Idle is why it did not begin, and Err why it could not be finished; empty for
	// none. Wrote: it has written the object.
	Woken     []string
	Idle, Err string
	Wrote     bool
	// Attempts are the attempts of handlers, in order.
	Attempts []Attempt
	// Skips are the handlers that were due and did not run.
	Skips []Skip
	// Version is the object as the reconcile has read it; nil if it is not kept.
	Version *cached.Object
	// Left is the object after the write of the reconcile, if no later reconcile has seen it; otherwise nil.
	Left *cached.Object
}

// Attempt is one attempt of a handler. Number counts the attempts. Err is empty for a success.
type Attempt struct {
	Handler, Cause string
	Number         int
	Outcome, Err   string
	Took           time.Duration
}

// Skip is a handler that was due and did not run, and why.
type Skip struct {
	Handler, Cause, Reason, Detail string
}

// Record is the record of one reconcile in bytes: a letter for each item, and numbers as varints. A text is the number
// of a word of the store, or has its length before it. A nil record ignores all calls.
type Record struct {
	words *words
	data  []byte
	// ran: a handler ran, or something was written.
	ran bool
}

// The letters.
const (
	ofWoken   = 'w'
	ofIdle    = 'i'
	ofErr     = 'e'
	ofWrote   = 'o'
	ofAttempt = 'a'
	ofSkip    = 's'
)

// Woken records a change that woke the reconcile. There may be several.
func (r *Record) Woken(by string) { r.note(ofWoken, by) }

// Idle records why it does not begin.
func (r *Record) Idle(reason string) { r.note(ofIdle, reason) }

// Err records why it could not be finished.
func (r *Record) Err(err error) {
	if err != nil {
		r.note(ofErr, err.Error())
	}
}

// Wrote records that it has written the object.
func (r *Record) Wrote() {
	if r != nil {
		r.data, r.ran = append(r.data, ofWrote), true
	}
}

// note records an item that is a text, unless that is empty.
func (r *Record) note(letter byte, text string) {
	if r == nil || text == "" {
		return
	}
	r.data = append(r.data, letter)
	r.text(text)
}

// Attempt records an attempt of a handler.
func (r *Record) Attempt(a Attempt) {
	if r == nil {
		return
	}
	r.data, r.ran = append(r.data, ofAttempt), true
	r.word(a.Handler)
	r.word(a.Cause)
	r.word(a.Outcome)
	r.text(why.Plainly(a.Err))
	r.data = binary.AppendUvarint(r.data, uint64(a.Number))
	r.data = binary.AppendUvarint(r.data, uint64(max(a.Took, 0)/time.Microsecond))
}

// Skip records a handler that did not run.
func (r *Record) Skip(s Skip) {
	if r == nil {
		return
	}
	r.data = append(r.data, ofSkip)
	r.word(s.Handler)
	r.word(s.Cause)
	r.word(s.Reason)
	r.text(s.Detail)
}

// word writes a text that many reconciles have: the id of a handler, a cause, an outcome or a reason.
func (r *Record) word(text string) {
	number, known := r.words.number(text)
	if !known {
		r.text(text)
		return
	}
	r.data = binary.AppendUvarint(r.data, uint64(number)<<1|1)
}

// text writes a text that few other reconciles have.
func (r *Record) text(text string) {
	text = plain.Short(text, textMost)
	r.data = binary.AppendUvarint(r.data, uint64(len(text))<<1)
	r.data = append(r.data, text...)
}

// reader reads the bytes of a record.
type reader struct {
	words *words
	rest  []byte
}

func (r *reader) number() int {
	n, size := binary.Uvarint(r.rest)
	r.rest = r.rest[max(size, 0):]
	return int(n)
}

// text reads a text or a word.
func (r *reader) text() string {
	n := r.number()
	if n&1 == 1 {
		return r.words.at(n >> 1)
	}
	n >>= 1
	text := string(r.rest[:n])
	r.rest = r.rest[n:]
	return text
}

// decode reads the bytes of a record.
func (w *words) decode(data []byte) (p Reconcile) {
	for r := (reader{w, data}); len(r.rest) > 0; {
		letter := r.rest[0]
		switch r.rest = r.rest[1:]; letter {
		case ofWoken:
			p.Woken = append(p.Woken, r.text())
		case ofIdle:
			p.Idle = r.text()
		case ofErr:
			p.Err = r.text()
		case ofWrote:
			p.Wrote = true
		case ofAttempt:
			a := Attempt{Handler: r.text(), Cause: r.text(), Outcome: r.text(), Err: r.text()}
			a.Number, a.Took = r.number(), time.Duration(r.number())*time.Microsecond
			p.Attempts = append(p.Attempts, a)
		case ofSkip:
			p.Skips = append(p.Skips, Skip{Handler: r.text(), Cause: r.text(), Reason: r.text(), Detail: r.text()})
		}
	}
	return p
}
