// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package reconcile runs handlers over one object, from its key to the time at which the key is due next.
//
// A [Controller] is what a resource offers its reconciles, and [Controller.Run] runs one. A reconcile works from an [Input], which nothing changes. Its
// steps take a [State] and return the next one: observe, handle (for each handler decide and attempt), sweep, settle, write,
// remember. The reconcile gives up in one place, abandon. Its [Result] says what it found and did, and why handlers did not run; the
// [Observer] makes from it what the log, Events and metrics say of handlers and of the object. Children, the progress and machines log
// what they write when they write it.
//
// [Decide] and [Settle] are the rules, as pure functions of values. [ObjectState] is what the process knows of an object between
// reconciles; its parts are written by what they belong to: the progress, the session of children, the filters. [Attempt] is a handler with
// something to do in a reconcile.
package reconcile
