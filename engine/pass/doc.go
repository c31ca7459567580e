// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package pass runs handlers over one object, from its key to the time at which the key is due next.
//
// A [Site] is what a resource offers its passes, and [Site.Run] runs one. A pass works from an [Input], which nothing changes. Its
// steps take a [State] and return the next one: observe, handle (for each handler decide and attempt), sweep, settle, write,
// remember. The pass gives up in one place, abandon. Its [Result] says what it found and did, with a [Why] for each handler for
// which something was due; the [Observer] makes the log, Events and metrics from that.
//
// [Decide] and [Settle] are the rules, as pure functions of values. [Memory] is what the process knows of an object between
// passes; its parts are written by what they belong to: the book, the session of children, the filters. [Job] is a handler with
// something to do in a pass.
package pass
