// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package machine runs state machines over objects: it reads an object's state from the book in the status, decides
// what to do, does it, and writes the new state into a patch. No other package knows the form of the book. It sends
// no requests: actions use the request that they get.
package machine

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// Book is the state of an object in a machine.
type Book struct {
	State string
	// Since is when the state was entered, and Entered when its Enter had succeeded, or zero; both in whole
	// seconds.
	Since, Entered time.Time
	// Failures is how often actions have failed in the state, for a state with Retries.
	Failures int64
}

// Read reads an object's book. It is not found if the object has none, or that of another object. Since is zero if
// it is not a valid time, or in the future: otherwise anyone who may write the status could postpone time limits.
func Read(m *dsl.Machine, o *unstructured.Unstructured) (b Book, found bool) {
	value := func(name string) any {
		out, _ := m.Field(name).In(o.Object)
		return out
	}
	b.State, _ = value(dsl.BookState).(string)
	uid, _ := value(dsl.BookUID).(string)
	if b.State == "" || uid != string(o.GetUID()) {
		return Book{}, false
	}
	b.Since, b.Entered = moment(value(dsl.BookSince)), moment(value(dsl.BookEntered))
	if time.Until(b.Since) > plain.ClockSkew {
		b.Since = time.Time{}
	}
	b.Failures = whole(value(dsl.BookFailures))
	return b, true
}

// moment reads a time; zero if it is missing or invalid.
func moment(value any) time.Time {
	text, _ := value.(string)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}

// whole reads a number; zero if it is missing.
func whole(value any) int64 {
	switch n := value.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return 0
}

// stamp formats a time; nil for zero.
func stamp(at time.Time) any {
	if at.IsZero() {
		return nil
	}
	return at.UTC().Format(time.RFC3339)
}

// tree returns the book for the status, with nil for missing fields. It has the history only if told is set.
func (b Book) tree(uid types.UID, history []any, told bool) map[string]any {
	out := map[string]any{
		dsl.BookState: b.State, dsl.BookSince: stamp(b.Since), dsl.BookEntered: stamp(b.Entered), dsl.BookUID: string(uid), dsl.BookFailures: nil,
	}
	if b.Failures > 0 {
		out[dsl.BookFailures] = b.Failures
	}
	switch {
	case told && len(history) > 0:
		out[dsl.BookHistory] = history
	case told:
		out[dsl.BookHistory] = nil
	}
	return out
}

// historyOf returns an object's history.
func historyOf(m *dsl.Machine, o *unstructured.Unstructured) []any {
	value, _ := m.Field(dsl.BookHistory).In(o.Object)
	list, _ := value.([]any)
	return slices.Clone(list)
}

// Move is a transition that was taken.
type Move struct {
	From, To string
	// At is the time, in whole seconds, and Stayed how long the object was in the previous state.
	At     time.Time
	Stayed time.Duration
	Why    string
	// Failed: the target state is Failed.
	Failed bool
}

// String describes it for people.
func (v Move) String() string {
	return strings.TrimSuffix(v.From+" → "+v.To+": "+v.Why, ": ")
}

// Kind is the type of its Event.
func (v Move) Kind() dsl.EventType {
	if v.Failed {
		return dsl.Warning
	}
	return dsl.Normal
}

// Taken returns the attempt's transitions, if the written object has them: a schema may lack the book.
func (x *Run) Taken(written *unstructured.Unstructured) []Move {
	b, found := Read(x.machine, written)
	if n := len(x.Moves); n == 0 || !found || b.State != x.Moves[n-1].To || !b.Since.Equal(x.Moves[n-1].At) {
		return nil
	}
	return x.Moves
}

// entry returns the move for the history.
func (v Move) entry() map[string]any {
	return map[string]any{"from": v.From, "to": v.To, "when": stamp(v.At), "why": v.Why}
}

// kept returns a history with one more move, limited to the machine's length.
func kept(m *dsl.Machine, history []any, v Move) []any {
	most := m.History
	if most == 0 {
		most = dsl.DefaultHistory
	}
	if most < 0 {
		return nil
	}
	history = append(history, v.entry())
	return history[max(0, len(history)-most):]
}
