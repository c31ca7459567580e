// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"
	"time"
)

// TestWhetherASourceIsBehind follows a source through alarms and listings; its cache shows each version at once unless a step says
// otherwise.
func TestWhetherASourceIsBehind(t *testing.T) {
	type step struct {
		do          func(e *era)
		cache       string
		due, behind bool
	}
	tests := map[string][]step{
		"no alarm": {{func(e *era) { e.begin(); e.complete("5") }, "5", false, false}},
		"an alarm, and a listing after it": {
			{func(e *era) { e.want(1) }, "5", true, true},
			{func(e *era) { e.begin() }, "5", true, true},
			{func(e *era) { e.complete("3") }, "5", false, true}, // the cache has yet to take it
			{func(*era) {}, "3", false, false},
		},
		"an alarm while a listing is under way": {
			{func(e *era) { e.begin(); e.want(1) }, "5", true, true},
			{func(e *era) { e.complete("5") }, "5", true, true},
		},
		"a listing that raises the alarm itself": {
			{func(e *era) { e.begin(); e.want(1); e.relisted() }, "5", true, true},
			{func(e *era) { e.complete("3") }, "3", false, false},
		},
		"events before the cache takes the listing": {
			{func(e *era) { e.want(1); e.begin(); e.complete("3"); e.hand("4"); e.hand("") }, "3", false, true},
			{func(*era) {}, "4", false, false},
		},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			e := &era{}
			for i, s := range steps {
				s.do(e)
				if due, behind := e.due(), e.behind(func() string { return s.cache }); due != s.due || behind != s.behind {
					t.Errorf("step %d: it is due: %v, and behind: %v", i, due, behind)
				}
			}
		})
	}
}

func TestAStreamHearsOfAnAlarm(t *testing.T) {
	e := &era{}
	heard := func(of <-chan struct{}) bool {
		select {
		case <-of:
			return true
		default:
			return false
		}
	}
	turned := e.turned()
	if heard(turned) {
		t.Error("it hears of one before there is any")
	}
	if e.want(1); !heard(turned) || !heard(e.turned()) {
		t.Error("it does not hear of it, before the source has listed")
	}
	if e.begin(); !heard(e.turned()) {
		t.Error("it does not hear of it while the source lists")
	}
	if e.complete("1"); heard(e.turned()) {
		t.Error("it hears of one after the source has listed")
	}
}

// TestTheServerIsAskedOnceForEachCut holds when the newest version is to be asked for after watches ended before their time.
func TestTheServerIsAskedOnceForEachCut(t *testing.T) {
	e := &era{}
	if e.doubtful() {
		t.Error("it is asked without a cut")
	}
	e.cut()
	if !e.doubtful() || e.doubtful() {
		t.Error("it is not asked after a cut, or twice at a time")
	}
	e.hand("7")
	cuts, had, open := e.recheck(t.Context())
	if had != "7" || !open {
		t.Errorf("it is asked about version %q: %v", had, open)
	}
	e.cut() // while it answers
	e.prove(cuts)
	if _, _, open := e.recheck(t.Context()); !open {
		t.Error("an answer counts for a later cut")
	}
	if e.complete("8"); e.doubtful() {
		t.Error("it is asked after a listing")
	}
	if _, _, open := e.recheck(t.Context()); open {
		t.Error("the question stays open after a listing")
	}
}

func TestWhenBookmarksAreExpected(t *testing.T) {
	tests := map[string]struct {
		do   func(*bookmarks)
		beat time.Duration
		came bool
	}{
		"none came":                               {func(*bookmarks) {}, 0, false},
		"one ended a list":                        {(*bookmarks).expect, usualBeat, false},
		"one ended a list, and none came since":   {func(b *bookmarks) { b.expect(); b.distrust() }, 0, false},
		"they come":                               {func(b *bookmarks) { b.beats(time.Minute); b.beats(time.Second) }, time.Minute, true},
		"they come, and two watches had no event": {func(b *bookmarks) { b.beats(time.Minute); b.distrust() }, time.Minute, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := &bookmarks{}
			tt.do(b)
			if beat := b.beats(0); beat != tt.beat || b.came() != tt.came {
				t.Errorf("one is expected within %s, and some came: %v", beat, b.came())
			}
			if fault := !b.distrust(); fault != tt.came {
				t.Errorf("two watches without an event are a fault: %v", fault)
			}
		})
	}
}
