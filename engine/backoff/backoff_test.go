// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"testing"
	"time"
)

func TestNext(t *testing.T) {
	var last time.Duration
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second} {
		wait, in := Next(last, time.Second, 5*time.Second)
		if wait != want || in > wait || in < wait*4/5 {
			t.Errorf("after %v it waits %v, in fact %v; want %v", last, wait, in, want)
		}
		last = wait
	}
}
