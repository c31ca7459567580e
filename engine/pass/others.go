// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pass

import (
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
)

// Others is what is known, in a pass, of the handlers of an object that another one has to do with.
type Others struct {
	Readers []book.Reader
	// Entry returns a handler's entry in the book. Jobs are those that the pass has come to.
	Entry func(book.Reader) book.Entry
	Jobs  Jobs
	// Deletion is the moment at which the object was deleted, empty while it lives.
	Deletion string
	// Sees asks a handler's filters, and reports whether it sees the object, or may. Unsure reports whether it has something
	// to do if its filters hold, and these could not be asked.
	Sees   func(book.Reader) bool
	Unsure func(handler string) bool
}

// Block reports whether a handler that this one comes after is not through yet, may have something to do, or failed for good.
// Either way this one has no outcome.
func (o Others) Block(h *dsl.Handler) bool { return o.Blocker(h) != "" }

// Blocker names the first handler that blocks this one; empty for none.
func (o Others) Blocker(h *dsl.Handler) string {
	i := slices.IndexFunc(o.Readers, func(r book.Reader) bool {
		if !slices.Contains(h.After, r.ID) {
			return false
		}
		if j := o.Jobs.Of(r); j != nil {
			return !j.Through()
		}
		if o.Unsure(r.ID) {
			return true
		}
		e := o.Entry(r)
		failed := e.Lost != "" && o.Deletion == "" || o.Deletion != "" && e.DeleteDone(o.Deletion) && e.Try.Failed
		return failed && o.Sees(r)
	})
	if i < 0 {
		return ""
	}
	return o.Readers[i].ID
}

// Make reports whether others are still to be tried again for the object's creation, or wait for such a one: they may write
// what this one looks at.
func (o Others) Make(r book.Reader) bool {
	return slices.ContainsFunc(o.Readers, func(other book.Reader) bool {
		e := o.Entry(other)
		if other.ID == r.ID || e.Seen != "" || e.Begins || !other.On(dsl.Create) {
			return false
		}
		return e.Try.Begun() || o.Block(other.Handler)
	})
}
