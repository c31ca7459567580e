// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"testing"
	"time"
	"unsafe"

	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/decide/breaker"
	"github.com/handwerk-dev/handwerk/engine/decide/filter"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestSleep holds what is kept of an object between reconciles: all that was remembered, and no room for what was not.
func TestSleep(t *testing.T) {
	tests := map[string]struct {
		remember func(m *ObjectState)
		keeps    bool
	}{
		"nothing": {func(*ObjectState) {}, false},
		"what all objects have": {func(m *ObjectState) {
			m.Seen, m.Finalized, m.Owes, m.Resync, m.Breaker = true, true, true, new(time.Now()), &breaker.Breaker{}
		}, false},
		"how often the CRD has changed":        {func(m *ObjectState) { m.Schemas = 3 }, false},
		"changes that the server drops":        {func(m *ObjectState) { m.Schemas, m.Ignored = 3, []uint64{7} }, true},
		"handlers that run once more":          {func(m *ObjectState) { m.Rerun = []string{"h"} }, true},
		"handlers that were refused":           {func(m *ObjectState) { m.Rejected = map[string]bool{"h": true} }, true},
		"an event":                             {func(m *ObjectState) { m.Event = "ADDED" }, true},
		"timers":                               {func(m *ObjectState) { m.Ticks = []Tick{{}} }, true},
		"a write that the cache does not show": {func(m *ObjectState) { m.Writes.Add(inbox.Write{UID: "u"}) }, true},
		"a filter that failed": {func(m *ObjectState) {
			m.Filters.Failed(filter.Question{Handler: &dsl.Handler{ID: "h"}}, filter.Answer{Err: errors.New("broken")}, filter.Moment{Backoff: func(int) time.Duration { return time.Second }})
		}, true},
		"a handler that asked to run at once":   {func(m *ObjectState) { m.Row("h", 1) }, true},
		"one that does so no more":              {func(m *ObjectState) { m.Row("h", 1); m.Row("h", 0) }, false},
		"what woke it":                          {func(m *ObjectState) { m.Woken = m.Woken.Next([]breaker.Version{{UID: "v", Text: "1"}}) }, true},
		"a failure that was logged":             {func(m *ObjectState) { m.Troubles.Failed("h", true) }, true},
		"conditions that are not to be retired": {func(m *ObjectState) { m.Settled = []string{"Ready"} }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := newMemory("u")
			test.remember(m)
			before := m.RareState
			m.Sleep()
			m.Sleep()
			if kept := m.RareState != nil; kept != test.keeps || kept && m.RareState != before {
				t.Errorf("what few objects have is kept: %t, want %t", kept, test.keeps)
			}
			if m.Wake(); m.RareState == nil || test.keeps && m.RareState != before {
				t.Error("it is not there when the object is looked at again")
			}
		})
	}
	var none *ObjectState
	none.Wake().Sleep()
}

// TestAnObjectAtRestIsSmall holds what one costs that has nothing but the progress of its handlers.
func TestAnObjectAtRestIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(ObjectState{}); size > 192 {
		t.Errorf("each object costs %d bytes, want 192 at most: what few of them have belongs into RareState", size)
	}
}

// TestAnEmptyMemoCostsNothing holds that a memo is there from one reconcile to the next where something is in it, and only there.
func TestAnEmptyMemoCostsNothing(t *testing.T) {
	m := newMemory("u")
	m.Kept()
	if m.Sleep(); m.RareState != nil {
		t.Errorf("an empty memo is kept: %+v", m.RareState)
	}
	m.Wake().Kept().Set("a", 1)
	m.Sleep()
	if value, _ := m.Wake().Kept().Get("a"); value != 1 {
		t.Errorf("it keeps %v", value)
	}
}
