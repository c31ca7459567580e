// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"math/bits"
	"time"

	"github.com/go-logr/logr"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
)

// trouble logs that an activity fails or waits: a line for each text, which is repeated at growing intervals with a
// count, and one line when it is over.
type trouble struct {
	log   logr.Logger
	times uint
	text  string
	// same counts the failures in a row with the text.
	same uint
}

// say notes a failure, or a wait.
func (t *trouble) say(err error, waits bool, again time.Duration) {
	t.times++
	if t.same++; err.Error() != t.text {
		t.text, t.same = err.Error(), 1
	}
	level := 1
	if bits.OnesCount(t.same) == 1 { // the first, the second, the fourth and so on
		level = 0
	}
	t.log.V(level).Info("activity will be tried again", logmark.Warning, !waits, "error", t.text, "failed", t.times,
		"retryAfter", again.Round(time.Millisecond).String())
}

// over notes that the activity has succeeded.
func (t *trouble) over() {
	if t.times == 0 {
		t.log.V(1).Info("activity succeeded")
		return
	}
	t.log.Info("activity works again", "failed", t.times)
}
