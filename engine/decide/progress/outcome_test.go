// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestWhatCameOfAHandler holds the outcome that others read, by the handler's entry and its try.
func TestWhatCameOfAHandler(t *testing.T) {
	due := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	second := due.Truncate(time.Second)
	failed := Record{Cause: dsl.Update, Attempts: 2, Due: due, Message: "no"}
	early := failed
	early.Due, early.Early = time.Time{}, due
	tests := map[string]struct {
		entry Entry
		now   Record
		want  dsl.Outcome
	}{
		"nothing is known":                 {want: dsl.Outcome{State: dsl.OutcomeNever}},
		"it was found, and has not run":    {entry: Entry{Handled: "x", AsFound: true}, want: dsl.Outcome{State: dsl.OutcomeNever}},
		"it has handled something":         {entry: Entry{Handled: "x"}, want: dsl.Outcome{State: dsl.OutcomeDone}},
		"it is about to run again":         {entry: Entry{Handled: "x"}, now: Record{Cause: dsl.Update}, want: dsl.Outcome{State: dsl.OutcomeDone}},
		"it has succeeded, after failures": {now: Record{Cause: dsl.Create}.Succeed(), want: dsl.Outcome{State: dsl.OutcomeDone}},
		"it fails, and did not before":     {entry: Entry{Handled: "x"}, now: failed, want: dsl.Outcome{State: dsl.OutcomeFailed, Message: "no", Attempts: 2, NextTry: second}},
		"it fails, and is tried early":     {now: early, want: dsl.Outcome{State: dsl.OutcomeFailed, Message: "no", Attempts: 2, NextTry: second}},
		"it has failed for good": {
			entry: Entry{Handled: "x", FailedFor: dsl.Update}, now: Record{Cause: dsl.Update, Attempts: 1, Done: true, Failed: true, Message: "no"},
			want: dsl.Outcome{State: dsl.OutcomeFailed, Message: "no", Attempts: 1},
		},
		"it has failed for good, and the error is not known": {
			entry: Entry{Handled: "x", FailedFor: dsl.Update}, want: dsl.Outcome{State: dsl.OutcomeFailed, Message: "it failed for good", Attempts: 1},
		},
		"it waits": {entry: Entry{Handled: "x"}, now: Record{Cause: dsl.Update, Waiting: true, Due: due, Message: "waiting for rain"}, want: dsl.Outcome{State: dsl.OutcomeWaiting, Message: "waiting for rain"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.entry.Outcome(test.now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestALookHearsOutcomes holds that the digest of a view changes with the outcomes that it includes, and with no others.
func TestALookHearsOutcomes(t *testing.T) {
	object := map[string]any{"apiVersion": "example.com/v1", "kind": "Foo", "spec": map[string]any{"a": int64(1)}}
	plain := NewView(dsl.View{Only: true, Beside: []dsl.Path{{"spec", "a"}}}, Own{})
	state := NewView(dsl.View{Only: true, Beside: []dsl.Path{{"spec", "a"}}, Outcomes: []dsl.Path{{"x", "state"}}}, Own{})
	whole := NewView(dsl.View{Fields: []dsl.Path{{"spec", "a"}}, Outcomes: []dsl.Path{{"x"}}}, Own{})
	digests := func(l *Snapshot) []string { return []string{l.Digest(plain), l.Digest(state), l.Digest(whole)} }
	before := NewSnapshot(object).WithOutcomes(dsl.Outcomes{"x": {State: dsl.OutcomeDone}, "y": {State: dsl.OutcomeDone}})
	first := digests(before)
	for name, test := range map[string]struct {
		now     dsl.Outcomes
		changed []bool
	}{
		"of another handler": {dsl.Outcomes{"x": {State: dsl.OutcomeDone}, "y": {State: dsl.OutcomeFailed}}, []bool{false, false, false}},
		"another message":    {dsl.Outcomes{"x": {State: dsl.OutcomeDone, Message: "hello"}}, []bool{false, false, true}},
		"another state":      {dsl.Outcomes{"x": {State: dsl.OutcomeFailed}}, []bool{false, true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			after := before.WithOutcomes(test.now)
			same := after.With(map[string]any{"spec": object["spec"], "status": "x"}, map[string]any{"status": "x"})
			for _, snapshot := range []*Snapshot{after, same, after.At(object)} {
				var changed []bool
				for i, digest := range digests(snapshot) {
					changed = append(changed, digest != first[i])
				}
				if diff := cmp.Diff(test.changed, changed); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}
