// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package children ties the objects of a resource to their children. It watches the kinds of children, and finds the
// owner for an event of a child. On each owner it keeps the inventory of children that have no owner reference.
// Handlers, filters and daemons get their [dsl.Children] from it. A [Session] gives one reconcile access to its
// object's children, and records its writes. A [Budget] bounds the memory that all reconciles together take for large
// children.
package children
