// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package machine runs state machines over objects: it reads from the book in the status where an object is, decides what to do,
// does it, and writes into a patch where the object is then. It alone knows the form of that book. It sends no requests: actions
// use the request that they get.
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

// Book is where an object is in a machine.
type Book struct {
	State string
	// Since is when the state was entered, and Entered when its Enter had succeeded, zero before; both in whole seconds.
	Since, Entered time.Time
	// Failures is how often actions have failed in the state, where it counts that.
	Failures int64
}

// Read reads an object's book. It is not found where the object has none, or that of another object. Since is zero where it is
// no time, or one in the future: whoever may write the status would put off time-outs by it.
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

// moment reads a time; zero where there is none, as when somebody has written nonsense.
func moment(value any) time.Time {
	text, _ := value.(string)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}

// whole reads a number, zero where there is none.
func whole(value any) int64 {
	switch n := value.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return 0
}

// stamp writes a time, nil for none.
func stamp(at time.Time) any {
	if at.IsZero() {
		return nil
	}
	return at.UTC().Format(time.RFC3339)
}

// tree is the book as the status has it, with nil for what it does not have. The history is left as it is unless there is
// one to be written.
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

// historyOf is the history that an object has.
func historyOf(m *dsl.Machine, o *unstructured.Unstructured) []any {
	value, _ := m.Field(dsl.BookHistory).In(o.Object)
	list, _ := value.([]any)
	return slices.Clone(list)
}

// Move is a transition that was taken.
type Move struct {
	From, To string
	// At is when, in whole seconds, and Stayed how long the object was in the state before.
	At     time.Time
	Stayed time.Duration
	Why    string
	// Failed: the state that it leads to is a bad end.
	Failed bool
}

// String says it for people.
func (v Move) String() string {
	return strings.TrimSuffix(v.From+" → "+v.To+": "+v.Why, ": ")
}

// Kind is that of its Event.
func (v Move) Kind() dsl.EventType {
	if v.Failed {
		return dsl.Warning
	}
	return dsl.Normal
}

// Taken are the transitions of the attempt, if an object that was written has them: a schema may not have the book.
func (x *Run) Taken(written *unstructured.Unstructured) []Move {
	b, found := Read(x.machine, written)
	if n := len(x.Moves); n == 0 || !found || b.State != x.Moves[n-1].To || !b.Since.Equal(x.Moves[n-1].At) {
		return nil
	}
	return x.Moves
}

// entry is the move as the history has it.
func (v Move) entry() map[string]any {
	return map[string]any{"from": v.From, "to": v.To, "when": stamp(v.At), "why": v.Why}
}

// kept is a history with one more move, as long as the machine keeps it.
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
