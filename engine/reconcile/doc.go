// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package reconcile runs handlers over one object, from its key to the time at which the key is due next.
//
// A [Controller] serves the reconciles of one resource, and [Controller.Reconcile] runs one. There are four kinds of run, and each has
// its own steps:
//
//   - An object that the cache has (reconcile.go): the gates (gates.go), open, observe, handle (for each handler decide and attempt),
//     prune, settle, write, remember, conclude.
//   - An object that is gone (gone.go): the same without a write to the object, but for marks that are left on it (release.go).
//   - A schedule (schedule.go): a handler that runs by time for the resource as a whole.
//   - A question (asked.go): what a person asks about an object. No handler runs, and nothing is written or remembered.
//
// A run works from an [Input], which nothing changes. Its steps take a [State] and return the next one. A run that cannot be finished
// ends in abandon. Its [Result] has its findings and actions, and the reasons of handlers that did not run. The [Observer] makes the log,
// Events and metrics from it. Children, the progress and machines log their writes when they make them.
//
// [Decide] and [Settle] are the rules, as pure functions of values. [ObjectState] is what the process remembers of an object between
// reconciles. [Attempt] is a handler with something to do in a reconcile.
package reconcile
