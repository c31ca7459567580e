// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"errors"
	"fmt"
	"slices"
)

// MostSubHandlers is how many sub-handlers a handler may declare in one run. It is limited because their progress
// is stored on the object.
const MostSubHandlers = 100

// Parts are the sub-handlers that a handler has declared in one run. The zero value has none.
type Parts struct {
	list []*Handler
	then Func
	err  error
	// closed: the handler has returned, and the sub-handlers run.
	closed bool
}

// Handle declares a sub-handler: a part of the handler's work with its own progress, for example for one entry of a
// list. The handler calls it while it runs. After the handler has returned without an error, its sub-handlers run
// in the order of their declaration. Each may have these options: [Retries], [WithBackoff], [Timeout], [Deadline],
// [Errors], and the filters [When], [Label], [Annotation] and [Field]. With Field, one of the fields must exist. If
// the handler knows what it handled last, one of them must have changed, and Diff has only those changes. A
// sub-handler's request is like the handler's, with its own patch and attempts. Its Handler is the parent's id, a
// slash and its own id. It may declare sub-handlers itself.
//
// The handler is done when all sub-handlers have finished. It runs again when the next of them is due, so it should
// only declare them. Those that have succeeded do not run again. That also holds after a restart, if progress is
// stored on the object: the handler must not be level-triggered, and must not run for children, related objects or
// indexes, whose changes before the restart are not known. When all have finished and one has failed for good, the
// handler has failed for good, and names it. When something changes that the handler looks at, all sub-handlers
// start over. Their children are children of the handler. The handler's timeout limits all of them that run in one
// attempt.
//
// Logs, Events and conditions report their failures as the handler's. Metrics count them as <handler>/*, because
// there may be as many ids as objects. The handler fails for good if an id is invalid or used twice, if another
// option is given, or if there are more than MostSubHandlers. It also fails for good if a sub-handler is declared
// after the handler has returned, for example by a sub-handler that uses its parent's request.
func (r *Request) Handle(id string, fn Func, options ...Option) {
	h := &Handler{ID: id, Func: fn, Retries: Unlimited}
	for _, set := range options {
		set(h)
	}
	if r.Parts == nil {
		r.Parts = &Parts{} // only in a test without an engine
	}
	r.Parts.add(r.Handler, h)
}

// Then declares what the handler does after all of its sub-handlers have succeeded, including those that are
// declared later. Its error is the handler's: the handler runs again, and its sub-handlers do not. The last call of
// Then counts.
func (r *Request) Then(fn Func) {
	if r.Parts == nil {
		r.Parts = &Parts{} // only in a test without an engine
	}
	r.Parts.then = fn
}

func (p *Parts) add(parent string, h *Handler) {
	wrong := func(format string, args ...any) {
		p.err = errors.Join(p.err, fmt.Errorf("declaring sub-handler %s/%s: %w", parent, h.ID, fmt.Errorf(format, args...)))
	}
	switch {
	case p.closed:
		wrong("the handler has returned: sub-handlers are declared before that, and by a sub-handler with the request that it gets itself")
	case h.Func == nil:
		wrong("it has a nil function")
	case h.WrongID() != "":
		wrong("id: %s", h.WrongID())
	case slices.ContainsFunc(p.list, func(other *Handler) bool { return other.ID == h.ID }):
		wrong("the id is used twice")
	case len(p.list) >= MostSubHandlers:
		wrong("there are more than %d", MostSubHandlers)
	case len(h.invalid) > 0:
		wrong("%w", h.invalid[0].Err)
	case slices.ContainsFunc(optionTable, func(row optionRow) bool { return row.bars(SubHandler) && row.given != nil && row.given(h) }):
		wrong("it has an option that is for handlers of a resource alone")
	}
	var found []error
	h.checkAttempts(check{Place{Handler: h}, &found})
	for _, err := range found {
		if fault, is := errors.AsType[*Fault](err); is {
			wrong("%w", fault.Err)
		}
	}
	p.list = append(p.list, h)
}

// Any reports whether there are sub-handlers, or a function of Then.
func (p *Parts) Any() bool { return p != nil && (len(p.list) > 0 || p.then != nil) }

// Finally returns the function of Then, or nil.
func (p *Parts) Finally() Func {
	if p == nil {
		return nil
	}
	return p.then
}

// Declared returns the sub-handlers in the order of their declaration, and the faults in it. After that, no more
// can be declared.
func (p *Parts) Declared() ([]*Handler, error) {
	if p == nil {
		return nil, nil
	}
	p.closed = true
	return slices.Clone(p.list), p.err
}
