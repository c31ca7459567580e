// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"fmt"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Reason is why a deletion waits.
type Reason string

// The reasons. They are also the reasons of the condition DeletionsHeld.
const (
	// ShareExceeded: too large a share of the objects is to be deleted. A person has to look.
	ShareExceeded Reason = "ShareExceeded"
	// RateExceeded: as many deletions as the limit allows have begun in the last minute. This one follows by itself.
	RateExceeded Reason = "RateExceeded"
	// RecordPending: the record of the limits is being read or written, which takes a moment.
	RecordPending Reason = "RecordPending"
)

// Answer says whether a deletion may begin. The zero value: it may.
type Answer struct {
	// Reason is why it has to wait; empty if it may begin.
	Reason Reason
	Limit  dsl.DeletionLimits
	Pool
	Cause Cause
	// Waits is how many deletions of the pool wait, All the number of its objects; for Held.
	Waits, All int
	// After is when the deletion has to ask again.
	After time.Duration
}

// CanBegin reports whether the deletion may begin.
func (a Answer) CanBegin() bool { return a.Reason == "" }

// String explains the answer with its numbers.
func (a Answer) String() string {
	switch a.Reason {
	case ShareExceeded:
		return fmt.Sprintf("%d of %d %s objects of %s are to be deleted (cause %s), more than limits.deletions.share allows (%d%%); operator release lets them go",
			a.Waits, a.All, a.Kind, a.Resource, a.Cause, a.Limit.Share)
	case RateExceeded, RecordPending:
		return a.Summary()
	}
	return ""
}

// Summary explains the answer without numbers that change.
func (a Answer) Summary() string {
	switch a.Reason {
	case ShareExceeded:
		return fmt.Sprintf("more than %d%% of the %s objects of %s are to be deleted; operator release lets them go", a.Limit.Share, a.Kind, a.Resource)
	case RateExceeded:
		return fmt.Sprintf("limits.deletions.perMinute (%d) is used up, and it begins in turn", a.Limit.PerMinute)
	case RecordPending:
		return "the record of limits.deletions is being read or written"
	}
	return ""
}
