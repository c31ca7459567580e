// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
)

// noon is the time of the tests' passes.
var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func TestWhenATimeFromTheObjectHasArrived(t *testing.T) {
	before, after := noon.Add(-time.Hour), noon.Add(time.Hour)
	failed := Entry{At: before, Handled: "a", FailedFor: dsl.Timer, Try: Record{Cause: dsl.Timer, View: "a", Done: true, Failed: true}}
	tests := map[string]struct {
		entry Entry
		at    time.Time
		want  bool
	}{
		"no time":                                     {Entry{}, time.Time{}, false},
		"a time to come":                              {Entry{}, after, false},
		"this very moment":                            {Entry{}, noon, true},
		"a time that has passed":                      {Entry{}, before, true},
		"a time for which it ran":                     {Entry{At: before}, before, false},
		"a time before the one for which it ran":      {Entry{At: noon}, before, false},
		"a time after the one for which it ran":       {Entry{At: before}, noon, true},
		"one that failed for good":                    {failed, before, false},
		"one that failed for good with another view":  {Entry{At: before, Handled: "b", FailedFor: dsl.Timer}, before, true},
		"one that failed for good for another reason": {Entry{At: before, Handled: "b", FailedFor: dsl.Update}, before, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.entry.Arrived(tt.at, noon, "a"); got != tt.want {
				t.Errorf("it has arrived: %t, want %t", got, tt.want)
			}
		})
	}
}

// TestWorkForATimeEndsWhenThatMovesOn holds what becomes of an entry whose time is to come, or none.
func TestWorkForATimeEndsWhenThatMovesOn(t *testing.T) {
	begun := Entry{Try: Record{Cause: dsl.Timer, Attempts: 2}}
	failed := Entry{At: noon, FailedFor: dsl.Timer, Try: Record{Cause: dsl.Timer, Done: true, Failed: true}}
	other := Entry{FailedFor: dsl.Create, Try: Record{Cause: dsl.Create, Done: true, Failed: true}}
	tests := map[string]struct {
		entry Entry
		at    time.Time
		want  Entry
	}{
		"a retry goes on while its time has come":  {begun, noon, begun},
		"a retry ends when the time moves on":      {begun, noon.Add(time.Second), Entry{}},
		"a retry ends when there is no time":       {begun, time.Time{}, Entry{}},
		"a failure for good stays with its time":   {failed, noon, failed},
		"a failure for good ends with a new time":  {failed, noon.Add(time.Second), Entry{At: noon}},
		"a failure for another cause has no time":  {other, time.Time{}, other},
		"what it ran for stays when there is none": {Entry{At: noon}, time.Time{}, Entry{At: noon}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.entry.Appoint(tt.at, noon)); diff != "" {
				t.Errorf("entry (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheTimeForWhichAHandlerRanIsStored holds that the next process knows it, and that nothing is stored before.
func TestTheTimeForWhichAHandlerRanIsStored(t *testing.T) {
	h := Handler{Handler: &dsl.Handler{ID: "expire", Causes: []dsl.Cause{dsl.Timer}, Timing: &dsl.Timing{At: func(*dsl.Subject) (time.Time, error) { return noon, nil }}}}
	snapshot := NewSnapshot(map[string]any{"spec": map[string]any{"size": int64(1)}})
	b := Progress{UID: "one"}
	if text, _, err := b.Encode([]Handler{h}, snapshot, maxSize); err != nil || text != "" || b.Mark([]Handler{h}) != "" {
		t.Errorf("before it has run, %q is stored (%v)", text, err)
	}
	at := noon.Add(time.Nanosecond)
	ran := b.With("expire", Entry{ViewName: "v", Handled: "x"}.RanFor(at))
	if ran.Mark([]Handler{h}) == "" || ran.Outcomes([]Handler{h}) == "" {
		t.Error("its run is no outcome")
	}
	text, _, err := ran.Encode([]Handler{h}, snapshot, maxSize)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"handwerk":2,"uid":"one","handlers":{"expire":{"at":"2030-01-01T12:00:00.000000001Z"}}}`
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	loaded, err := Load(text, "one")
	if err == nil {
		loaded, err = loaded.Adapt([]Handler{h}, Moment{Look: snapshot})
	}
	if e, _ := loaded.Entry("expire"); err != nil || !e.At.Equal(at) {
		t.Errorf("the next process knows %v (%v)", e, err)
	}
	if e := (Entry{At: noon}).RanFor(noon.Add(-time.Hour)); !e.At.Equal(noon) {
		t.Errorf("an earlier time takes the place of a later one: %v", e.At)
	}
}

// TestAHandlerThatComesAfterAnotherRunsForItsTimeOnceMore holds that one that failed for good is due again.
func TestAHandlerThatComesAfterAnotherRunsForItsTimeOnceMore(t *testing.T) {
	e := Entry{At: noon, Handled: "a", FailedFor: dsl.Timer, Try: Record{Cause: dsl.Timer, View: "a", Done: true, Failed: true}}
	if e.Arrived(noon, noon, "a") || !e.Retry().Arrived(noon, noon, "a") {
		t.Error("it is not due once the other one has succeeded, or was before")
	}
}
