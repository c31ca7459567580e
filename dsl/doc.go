// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package dsl is what operator authors import: the words in which an operator is written.
// It is pure.
//
// An [Operator] has [Resource] values, a resource has [Handler] values, a handler is a [Func] with its
// causes, filters and options. The YAML form (package dsl/config) compiles to the same value, and
// everything that looks at an operator (the engine, validate, rbac) reads that one value.
//
// A handler is an ordinary function. It reads the object from its [Request], notes in Request.Patch what
// it wants written, and tells by its error whether it is to run again:
//
//   - nil: done; it runs again when something it looks at changes.
//   - any error: it runs again, after the handler's back-off.
//   - [Temporary]: it runs again, after the time given.
//   - [Waiting]: it has not failed; it runs again when others have changed.
//   - [Permanent]: it has failed, until something it looks at changes.
//
// With [Typed] a handler has the object in a type of the author's, and what it changes there is what it wants written.
//
// Filters and relations get a [Subject], a request that cannot write. Package dsl imports nothing of the
// engine, so handlers can be tested without it. Actions for YAML are written with package dsl/actions.
package dsl
