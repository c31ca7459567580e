// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package backoff says how long to wait before what has failed is tried again.
package backoff

import (
	"math/rand/v2"
	"time"
)

// Next returns the wait after one of last, which is zero for none: twice that, from first up to most. In is how long
// that is in fact: up to a fifth less, so that those who failed together do not come back together.
func Next(last, first, most time.Duration) (wait, in time.Duration) {
	wait = min(max(2*last, first), most)
	return wait, wait - rand.N(wait/5)
}
