// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
)

func TestWait(t *testing.T) {
	before := Record{Cause: dsl.Delete, View: "v", Attempts: 2, Step: 1}
	got := before.Wait(&dsl.Handler{}, dsl.Waiting("rain", time.Hour), time.Hour, now)
	want := before
	want.Waiting, want.Due, want.Message = true, now.Add(time.Hour), "waiting for rain"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	if got.EndWait().Remaining(now) > 0 {
		t.Error("it cannot be hurried")
	}
	failing := Record{Due: now.Add(time.Hour)}
	if failing.EndWait() != failing {
		t.Error("one that has failed is hurried")
	}
	if after := got.Fail(&dsl.Handler{Retries: dsl.Unlimited}, errTest, now); after.Waiting || after.Step != 1 || after.Attempts != 3 {
		t.Errorf("after a failure the record is %+v", after)
	}
	if after := got.Succeed(); after.Waiting || after.Step != 0 {
		t.Errorf("after a success the record is %+v", after)
	}
}

func TestUntilWhenItWaitsIsNotStored(t *testing.T) {
	due := now.Add(time.Hour)
	for name, tt := range map[string]struct{ record, want Record }{
		"that it waits":         {Record{Cause: dsl.Create, Waiting: true, Due: due}, Record{Cause: dsl.Create, Waiting: true}},
		"steps that are done":   {Record{Cause: dsl.Create, Waiting: true, Due: due, Step: 2}, Record{Cause: dsl.Create, Waiting: true, Step: 2}},
		"a try that is to come": {Record{Cause: dsl.Create, Due: due, Attempts: 1}, Record{Cause: dsl.Create, Due: due, Attempts: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.record.Lasting()); diff != "" {
				t.Errorf("what is stored (-want +got):\n%s", diff)
			}
		})
	}
}
