// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plain_test

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// TestTimesAreShort: zero units are left out, and no digit is.
func TestTimesAreShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		10 * time.Minute: "10m", time.Hour: "1h", 90 * time.Minute: "1h30m", 30 * time.Second: "30s", 24 * time.Hour: "24h",
		time.Minute + time.Second: "1m1s", 90 * time.Second: "1m30s", 5*time.Minute + 10*time.Second: "5m10s",
		10*time.Hour + 10*time.Minute: "10h10m", 20 * time.Hour: "20h", time.Hour + time.Second: "1h0m1s", 100 * time.Millisecond: "100ms", 0: "0s",
	} {
		if got := plain.Period(d); got != want {
			t.Errorf("%v is written %s, want %s", d, got, want)
		}
	}
}
