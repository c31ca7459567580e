// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

// Lifecycle chooses which of an object's handlers run in one pass, and in which order. It is called once in each
// pass with due handlers, and gets them in declared order. Handlers that wait for their back-off, or for handlers
// that they come after, are not among them. Those that it leaves out run in a later pass, as soon as the changes of
// this pass are written and seen. That pass calls Lifecycle again, and handlers see the object as it is then. When
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

// OneByOne runs one handler in each pass, in declared order. Each pass writes its handler's changes separately. A
// handler sees what the handlers before it have written, and what the API server and others have changed since.
func OneByOne(due []Due) []Due { return due[:1] }
