// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import "time"

// Next is when a key must be looked at again. The zero value means not before something happens.
type Next struct {
	After time.Duration
	Class Class
	// Now: it is, as soon as the cache shows what was written.
	Now bool
}

// AtOnce returns what is due now.
func (n Next) AtOnce() Next { return Next{time.Nanosecond, Fresh, true} }

// Sooner returns the earlier of two.
func (n Next) Sooner(after time.Duration, class Class) Next {
	after = max(after, time.Nanosecond)
	if n.After == 0 || after < n.After {
		return Next{after, class, n.Now}
	}
	return n
}
