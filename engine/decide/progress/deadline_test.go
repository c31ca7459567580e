// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestTheTimeOfAllAttempts holds that it runs from the first attempt on, whatever becomes of that.
func TestTheTimeOfAllAttempts(t *testing.T) {
	h := &dsl.Handler{Retries: dsl.Unlimited, Deadline: time.Minute}
	begun := Record{Cause: dsl.Delete, View: "v"}.Start(h, now)
	if got := begun.Start(h, now.Add(time.Second)); !got.Began.Equal(now) {
		t.Errorf("a second attempt begins the time again: %v", got.Began)
	}
	waits := begun.Wait(h, dsl.Waiting("rain", time.Hour), time.Hour, now.Add(10*time.Second))
	if want := now.Add(time.Minute); !waits.Due.Equal(want) {
		t.Errorf("it waits until %v, want until its deadline, %v", waits.Due, want)
	}
	if waits.onlyWaits() || !waits.Lasting().Began.Equal(now) {
		t.Errorf("the time of the first attempt is not kept: %+v", waits.Lasting())
	}
	if err := waits.Overdue(h, now.Add(time.Minute-1)); err != nil {
		t.Errorf("an attempt may not begin before the deadline: %v", err)
	}
	err := waits.Overdue(h, now.Add(time.Minute))
	if !dsl.IsPermanent(err) || !strings.Contains(err.Error(), "the deadline (1m0s) passed: waiting for rain") {
		t.Errorf("at the deadline it says %v", err)
	}
	if got := waits.Fail(h, err, now.Add(time.Minute)); !got.Failed {
		t.Errorf("at the deadline it has not failed: %+v", got)
	}
	if got := begun.For(dsl.Delete, "w"); !got.Began.IsZero() {
		t.Errorf("another view does not begin again: %+v", got)
	}
	if got := (Record{}).Start(&dsl.Handler{}, now); !got.Began.IsZero() {
		t.Errorf("one without a deadline has a time: %+v", got)
	}
}

// TestAnIgnoredError holds that it counts as success.
func TestAnIgnoredError(t *testing.T) {
	h := &dsl.Handler{Retries: dsl.Unlimited, Errors: dsl.ErrorsIgnore}
	got := Record{Cause: dsl.Create, View: "v", Attempts: 1, Step: 2}.Fail(h, errTest, now)
	if want := (Record{Cause: dsl.Create, View: "v", Attempts: 2, Done: true}); got != want {
		t.Errorf("its record is %+v, want %+v", got, want)
	}
}
