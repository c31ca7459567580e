// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package dsl has the types and functions with which authors declare an operator. It is pure.
//
// An [Operator] has [Resource] values, a resource has [Handler] values, and a handler is a [Func] with its causes,
// filters and options. The YAML form (package dsl/config) compiles to the same value. The engine and the commands,
// such as validate and rbac, read that value alone.
//
// A handler is an ordinary function. It reads the object from its [Request], notes the wanted changes in
// Request.Patch, and says by its error whether it runs again:
//
//   - nil: done; it runs again when something it looks at changes.
//   - any error: it runs again, after the handler's back-off.
//   - [Temporary]: it runs again, after the time given.
//   - [Waiting]: it has not failed; it runs again when a child or a related object changes.
//   - [Permanent]: it has failed, until something it looks at changes.
//
// With [Typed], a handler gets the object in the author's type, and changes it directly.
//
// Filters and relations get a [Subject], a request that cannot write. Package dsl imports nothing of the engine, so
// handlers can be tested without it. Actions for YAML are written with package dsl/actions.
package dsl
