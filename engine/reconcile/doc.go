// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package pass runs handlers over one object, from its key to the time at which the key is due next.
//
// A [Site] is what a resource offers its passes, and [Site.Run] runs one. A pass works from an [Input], which nothing changes. Its
// steps take a [State] and return the next one: observe, handle (for each handler decide and attempt), sweep, settle, write,
// remember. The pass gives up in one place, abandon. Its [Result] says what it found and did, and why handlers did not run; the
// [Observer] makes from it what the log, Events and metrics say of handlers and of the object. Children, the book and machines log
// what they write when they write it.
//
// While code runs that may ask the pass something, a handler or a write that meets a conflict, the step publishes its state, and
// goes on with the published one when the code has returned.
//
// [Decide] and [Settle] are the rules, as pure functions of values. [Memory] is what the process knows of an object between
// passes; its parts are written by what they belong to: the book, the session of children, the filters. [Job] is a handler with
// something to do in a pass.
package pass
