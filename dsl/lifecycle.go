// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

// Lifecycle chooses which of an object's handlers run in one reconcile, and in which order. It is called once in each
// reconcile with due handlers, and gets them in declared order. It does not get handlers that wait for
// their back-off or for another handler. Handlers that it leaves out run in a later reconcile, once the changes of this
// reconcile are written and seen. That reconcile calls Lifecycle again, and handlers see the object as it is then. If
// Lifecycle returns no handler, or panics, the first handler runs. It must be quick, and must not change anything.
type Lifecycle func(due []Due) []Due

// Due is a handler that is due for an object.
type Due struct {
	Handler *Handler
	// Cause says why the handler is due.
	Cause Cause
	// Attempt counts the handler's attempts for this cause, including the coming one: from 1.
	Attempt int
}

// OneByOne runs one handler in each reconcile, in declared order. Each reconcile writes its handler's changes separately. A
// handler sees what the handlers before it have written, and what the API server and others have changed since.
func OneByOne(due []Due) []Due { return due[:1] }
