// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/decide/breaker"
	"github.com/handwerk-dev/handwerk/engine/decide/filter"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestStored holds what is kept of an object between reconciles: all that was remembered, and no room for what was not.
func TestStored(t *testing.T) {
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
			m := newState("u")
			test.remember(&m)
			stored := m.Stored()
			if kept := stored.rare != nil; kept != test.keeps {
				t.Errorf("what few objects have is kept: %t, want %t", kept, test.keeps)
			}
			again := stored.Open()
			if twice := again.Stored(); !reflect.DeepEqual(twice, stored) {
				t.Errorf("opened and stored again it is %+v, want %+v", twice, stored)
			}
		})
	}
}

// TestAReconcileHasACopyOfTheState holds that a reconcile changes the stored state only by storing its own, and that an answer
// changes none.
func TestAReconcileHasACopyOfTheState(t *testing.T) {
	m := newState("u")
	broken := filter.Question{Handler: &dsl.Handler{ID: "h"}}
	m.Filters.Failed(broken, filter.Answer{Err: errors.New("broken")}, filter.Moment{Backoff: func(int) time.Duration { return time.Second }})
	stored, want := m.Stored(), m
	want.Filters = m.Filters.Clone()
	asked := stored.Open().forAnswer()
	asked.Filters.Begin()
	asked.Seen, asked.Rerun = true, []string{"h"}
	if diff := cmp.Diff(want, stored.Open(), cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		t.Errorf("the stored state (-want +got):\n%s", diff)
	}
}

// TestAnObjectAtRestIsSmall holds what one costs that has nothing but the progress of its handlers.
func TestAnObjectAtRestIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(StoredState{}); size > 192 {
		t.Errorf("each object costs %d bytes, want 192 at most: what few of them have belongs into rareState", size)
	}
}

// TestAnEmptyMemoCostsNothing holds that a memo is there from one reconcile to the next where something is in it, and only there.
func TestAnEmptyMemoCostsNothing(t *testing.T) {
	m := newState("u")
	m.Kept()
	stored := m.Stored()
	if stored.rare != nil {
		t.Errorf("an empty memo is kept: %+v", stored.rare)
	}
	m = stored.Open()
	m.Kept().Set("a", 1)
	m = m.Stored().Open()
	if value, _ := m.Kept().Get("a"); value != 1 {
		t.Errorf("it keeps %v", value)
	}
}
