// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import "slices"

// Reads is what code is known to read of its object and of what is around it.
type Reads struct {
	// Paths are fields of the object. An empty path is all of it.
	Paths []Path
	// Parents are fields of which it asks whether there is something in them: it makes a difference whether they
	// are there themselves.
	Parents []Path
	// Children and Related report whether it reads any of them.
	Children, Related bool
	// Passing: it reads what the object itself does not say, and what nobody wakes it for: the time, what it runs
	// for, or what was before.
	Passing bool
	// Only: what the code does follows from what it reads, so it need not run when something else changes.
	Only bool
}

// And returns what two pieces of code read together.
func (r Reads) And(other Reads) Reads {
	return Reads{
		Paths:    append(slices.Clone(r.Paths), other.Paths...),
		Parents:  append(slices.Clone(r.Parents), other.Parents...),
		Children: r.Children || other.Children, Related: r.Related || other.Related,
		Passing: r.Passing || other.Passing, Only: r.Only && other.Only,
	}
}

// around returns the causes without changes of children and of related objects where the handler's code
// looks at nothing but what it reads, and reads none of them. Causes that were given by name stay.
func (h *Handler) around(causes []Cause) []Cause {
	if !h.Reads.Only || !h.Level() {
		return causes
	}
	return slices.DeleteFunc(causes, func(c Cause) bool {
		reads := c.row().reads
		return reads != nil && !reads(h.Reads) && !slices.Contains(h.given, c) && !slices.Contains(h.Brings, c)
	})
}

// Woken reports whether the handler runs for every change of what it reads beside its object.
func (h *Handler) Woken() bool {
	return !slices.ContainsFunc(causeTable, func(row causeRow) bool { return row.reads != nil && row.reads(h.Reads) && !h.On(row.cause) })
}
