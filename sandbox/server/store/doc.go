// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package store keeps the objects of one resource as the JSON that goes over the wire, with the history of their
// changes. An object is written more seldom than it is read, and its JSON takes a sixth of the memory of its tree.
//
// A store is not safe for use by several goroutines; its rows are immutable and may be read by any.
package store
