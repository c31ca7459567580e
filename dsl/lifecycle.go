// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

// Lifecycle chooses which of an object's handlers run in one pass, and in which order. It is asked once in each pass in which
// handlers are due, and gets them in declared order; those that have to wait, for their back-off or for handlers that they come
// after, are not among them. Those that it leaves out run in a later pass, which comes as soon as what these have changed is
// written and seen: so they are asked about anew, and have the object as it is then. Where it chooses none, or panics, the
// first one runs. It must be quick, and only reads.
type Lifecycle func(due []Due) []Due

// Due is a handler that is due for an object.
type Due struct {
	Handler *Handler
	// Cause says why.
	Cause Cause
	// Attempt counts its attempts for this cause, and this one: from 1.
	Attempt int
}

// OneByOne runs one handler in a pass, in declared order. Each pass has a write of its own where its handler changes something,
// and handlers see what those before them have written, also what the API server and others have made of it.
func OneByOne(due []Due) []Due { return due[:1] }
