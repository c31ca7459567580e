// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/engine/reconcile"
)

func TestAlarms(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	var none *reconcile.Alarm
	if none.Passed(now) || none.Soon() || !none.Next().IsZero() || none.Of("a") != nil || none.Pending(now) != nil || none.Without("a") != nil {
		t.Error("nothing is something")
	}
	all := none.With("a", time.Hour, now).With("b", -time.Minute, now).With("c", time.Minute, now)
	if all.Of("a").Passed(now) || !all.Of("b").Passed(now) || all.Of("a").Soon() || !all.Of("b").Soon() {
		t.Error("of a and b, b alone is at once")
	}
	if got := all.Next(); !got.Equal(now) {
		t.Errorf("the earliest is at %v", got)
	}
	left := all.Pending(now)
	if left.Of("b") != nil || left.Of("a") == nil || left.Of("c") == nil || all.Of("b") == nil {
		t.Error("those that are left, or those that were, are others")
	}
	if got := left.Next(); !got.Equal(now.Add(time.Minute)) {
		t.Errorf("the earliest that is left is at %v", got)
	}
	if left.Pending(now) != left {
		t.Error("what is left was recreated")
	}
	later := left.With("c", 2*time.Hour, now)
	if got := later.Next(); !got.Equal(now.Add(time.Hour)) {
		t.Errorf("with a later one, the earliest is at %v", got)
	}
	if later.Without("a").Without("c") != nil {
		t.Error("something is left")
	}
}

// TestWhatIsAtOnce holds that a tenth of a second is a pace.
func TestWhatIsAtOnce(t *testing.T) {
	for after, want := range map[time.Duration]bool{
		-time.Second: true, 0: true, time.Millisecond: true, 99 * time.Millisecond: true, 100 * time.Millisecond: false, 200 * time.Millisecond: false,
	} {
		if got := reconcile.AtOnce(after); got != want {
			t.Errorf("%v is at once: %v, want %v", after, got, want)
		}
	}
}
