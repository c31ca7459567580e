// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import "cmp"

// Limits bound how much an operator destroys before a person looks.
type Limits struct {
	Deletions DeletionLimits
}

// DeletionLimits bound the deletions that an operator begins. These are the children that it deletes, and the objects
// whose delete handlers begin. Deletions beyond a limit wait. A zero field means its default.
//
// The limits do not bound deletions by the garbage collector, which follows owner references by itself.
type DeletionLimits struct {
	// PerMinute is how many deletions may begin in any minute; the others wait for their turn. Defaults to
	// DefaultDeletionsPerMinute. Unlimited means any number.
	PerMinute int
	// Share is a percentage of the objects of a kind. If more of them are to be deleted at the same time, the deletions
	// wait until a person lets them go. Kinds with fewer than MinimumShared objects have no share. Defaults to
	// DefaultDeletionShare. Unlimited and 100 mean any share.
	Share int
}

// The defaults of DeletionLimits. They are high enough for the usual work of an operator: preview environments that
// end in the evening, or a template with another name.
const (
	DefaultDeletionsPerMinute = 100
	DefaultDeletionShare      = 30
	// MinimumShared is the number of objects of a kind from which on its share counts: a single object is a large share
	// of few.
	MinimumShared = 20
)

// WithDefaults returns the limits with the defaults in the place of zero.
func (l DeletionLimits) WithDefaults() DeletionLimits {
	return DeletionLimits{PerMinute: cmp.Or(l.PerMinute, DefaultDeletionsPerMinute), Share: cmp.Or(l.Share, DefaultDeletionShare)}
}

// Holds reports whether the share bounds anything.
func (l DeletionLimits) Holds() bool {
	share := l.WithDefaults().Share
	return share != Unlimited && share < 100
}

// Within reports whether the deletion of so many objects of a kind is within the share. All is the number of objects of
// the kind before.
func (l DeletionLimits) Within(deleted, all int) bool {
	return !l.Holds() || all < MinimumShared || deleted*100 <= l.WithDefaults().Share*all
}

func (l *DeletionLimits) check(c check, at string) {
	if l.PerMinute < Unlimited {
		c.fault(at+".perMinute", "want a number of deletions of 1 at least")
	}
	if l.Share < Unlimited || l.Share > 100 {
		c.fault(at+".share", "want a percentage between 1 and 100")
	}
}
