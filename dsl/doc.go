// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package dsl is what operator authors import: the words in which an operator is written.
//
// An [Operator] has [Resource] values, a resource has [Handler] values, a handler is a [Func]
// with the causes it runs for, its filters and its options. The YAML form (package dsl/config)
// compiles to the same value, and everything that looks at an operator (the engine, validate,
// why) walks that one value with [Walk].
//
// A handler is an ordinary function. It reads the object from its [Request], notes what it wants
// written in Request.Patch, Request.Status and Request.Conditions, and returns an error when it
// wants to be run again:
//
//   - nil: done; it runs again when something it looks at changes.
//   - any error: it runs again, after the handler's back-off.
//   - [Temporary]: it runs again, after the time given.
//   - [Permanent]: it has failed; it runs again only when something it looks at changes.
//
// Filters and relations get a [Subject], the part of a request that only tells: one that writes does not
// compile.
//
// Package dsl imports nothing of the engine, so handlers can be tested without it.
package dsl
