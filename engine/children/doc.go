// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package children ties the objects of a resource to their children. It watches the kinds of children, finds the owner for an
// event of a child, keeps on each owner the record of children that have no owner reference, and gives handlers, filters and
// daemons their [dsl.Children]. A [Session] is the view that one reconcile has of its object's children, with what the reconcile has
// written. A [Budget] bounds the memory that all reconciles together take for large children.
package children
