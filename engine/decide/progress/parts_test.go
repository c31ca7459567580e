// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestPartsFollowTheirHandler holds what becomes of sub-handlers' records when something has come up for their handler.
func TestPartsFollowTheirHandler(t *testing.T) {
	later := now.Add(time.Hour)
	waits, failed, done := Record{Waiting: true, Due: later}, Record{Attempts: 2, Due: later}, Record{Done: true, Attempts: 1}
	nested := Record{Waiting: true, Due: later, Step: 2, Parts: &Parts{Of: map[string]Record{"x": done, "y": failed}}}
	all := &Parts{Of: map[string]Record{"waits": waits, "failed": failed, "done": done, "nested": nested}}
	got := func(p *Parts) map[string]Record { return p.Of }

	t.Run("one that waits is due when its handler is, however deep", func(t *testing.T) {
		again := got(Record{Parts: all}.EndWait().Parts)
		if !again["waits"].Due.IsZero() || !again["nested"].Due.IsZero() || again["failed"] != failed || again["done"] != done {
			t.Errorf("the records are %+v", again)
		}
	})
	t.Run("one that failed has a look before its time, and keeps its back-off where it is stored", func(t *testing.T) {
		peek := Record{Parts: all}.TryEarly(now)
		if one := got(peek.Parts)["failed"]; one.Remaining(now) > 0 || !one.Early.Equal(later) {
			t.Errorf("the record is %+v", one)
		}
		if one := got(peek.Lasting().Parts)["failed"]; one != failed {
			t.Errorf("stored it is %+v, want %+v", one, failed)
		}
	})
	t.Run("what beside the object has changed has those that are through begin again", func(t *testing.T) {
		want := map[string]Record{"waits": waits, "failed": failed, "nested": {Waiting: true, Due: later, Parts: &Parts{Of: map[string]Record{"y": failed}}}}
		if diff := cmp.Diff(want, got(all.Rerun())); diff != "" {
			t.Errorf("parts (-want +got):\n%s", diff)
		}
		if only := (&Parts{Of: map[string]Record{"done": done}}).Rerun(); only != nil {
			t.Errorf("of one that is through there is %+v", only)
		}
	})
	t.Run("where nothing changes they are the same", func(t *testing.T) {
		idle := &Parts{Of: map[string]Record{"done": done}}
		if r := (Record{Parts: idle}); r.EndWait() != r || r.TryEarly(now) != r || r.Lasting() != r {
			t.Error("the record is another one")
		}
	})
	t.Run("what is done of steps and sub-handlers is left out", func(t *testing.T) {
		if n := (Record{Step: 2, Parts: all}).DoneParts(); n != 3 {
			t.Errorf("%d are done, want 3", n)
		}
	})
}
