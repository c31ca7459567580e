// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package child

// Deed is what was done to a child, or to another object.
type Deed string

// The deeds. The empty one is nothing.
const (
	// Created: it was not there.
	Created Deed = "created"
	// Updated: something else was desired than when it was last applied.
	Updated Deed = "updated"
	// PutBack: the same was desired, and somebody had changed it.
	PutBack Deed = "put back"
	// Adopted: it was nobody's.
	Adopted Deed = "adopted"
	// GivenBack: somebody else made it at the same time, and it was left to them.
	GivenBack Deed = "given back"
	// Deleted: it was deleted. Released: it was cut loose from its owner.
	Deleted  Deed = "deleted"
	Released Deed = "released"
	// Applied, Patched: an object that is no child was written.
	Applied Deed = "applied"
	Patched Deed = "patched"
)
