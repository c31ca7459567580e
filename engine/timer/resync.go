// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package timer

import (
	"math/rand/v2"
	"time"
)

// Resync returns when an object is due for its next resync, zero where there is no period. The first period is drawn at
// random, so that objects listed together do not come back together.
func Resync(period time.Duration, now time.Time, first bool) time.Time {
	if period <= 0 {
		return time.Time{}
	}
	if first {
		return now.Add(period/10 + rand.N(period-period/10))
	}
	return now.Add(period - rand.N(period/10+1))
}
