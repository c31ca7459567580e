// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"errors"
	"fmt"
	"slices"
)

// MostSubHandlers is how many sub-handlers one handler may declare in a run: their progress lies on the object.
const MostSubHandlers = 100

// Parts are the sub-handlers that a handler has declared in a run. The zero value has none.
type Parts struct {
	list []*Handler
	then Func
	err  error
	// closed: the handler has returned, and they run.
	closed bool
}

// Handle declares a sub-handler: a part of the work, as one of the entries of a list, with progress of its own. It is for the
// handler to call while it runs. When the handler has returned without an error, its sub-handlers run, in the order in which
// they were declared, each with options of its own: [Retries], [WithBackoff], [Timeout], [Deadline] and [Errors], and as filters
// [When], [Label], [Annotation] and [Field]: one of the fields must be there, or, where the handler knows what it handled last,
// have changed, and Diff has those changes alone. A sub-handler has a request like the handler's, with Handler being its parent's id, a slash
// and its own, a patch and attempts of its own, and may declare more.
//
// Until all of them have finished, the handler is not through. It runs again when the next of them is due, so it should do no
// more than to declare them; those that have succeeded do not run again, also after a restart
// where progress is kept on the object: where the handler is not level-triggered, and does not run for children, related objects or
// indexes either, of which nobody knows then what has changed. When all have finished and one has
// failed for good, the handler has failed for good, and says which. When what the handler looks at changes, all begin anew. What
// they make are children of the handler, and its timeout is that of all that run in one go. Logs, Events and conditions tell of
// their failures as of the handler's; metrics count them as <handler>/*, since their ids may be as many as objects. A wrong id, one that is used
// twice, another option, or more than MostSubHandlers fail the handler for good, and so does one that is declared when the handler
// has returned: by a sub-handler that uses its parent's request, say.
func (r *Request) Handle(id string, fn Func, options ...Option) {
	h := &Handler{ID: id, Func: fn, Retries: Unlimited}
	for _, set := range options {
		set(h)
	}
	if r.Parts == nil {
		r.Parts = &Parts{} // in a test that has no engine
	}
	r.Parts.add(r.Handler, h)
}

// Then declares what the handler does when all of its sub-handlers have succeeded, those that were declared later among them:
// its error is the handler's, and has it run again, but not them. The last one that is declared counts.
func (r *Request) Then(fn Func) {
	if r.Parts == nil {
		r.Parts = &Parts{} // in a test that has no engine
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
	case len(h.After)+len(h.Was)+len(h.Causes) > 0 || h.Timing != nil || h.NoFinalizer || h.Release || h.Deleted:
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

// Any reports whether sub-handlers are declared, or what is to be done then.
func (p *Parts) Any() bool { return p != nil && (len(p.list) > 0 || p.then != nil) }

// Finally returns what is to be done when all have succeeded, nil for nothing.
func (p *Parts) Finally() Func {
	if p == nil {
		return nil
	}
	return p.then
}

// Declared returns the sub-handlers in the order in which they were declared, and what is wrong with them. None can be declared
// any more then.
func (p *Parts) Declared() ([]*Handler, error) {
	if p == nil {
		return nil, nil
	}
	p.closed = true
	return slices.Clone(p.list), p.err
}
