// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

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

// Taken returns the attempt's transitions, if the written object has them: a schema may lack the progress.
func (x *Result) Taken(m *dsl.Machine, written *unstructured.Unstructured) []Move {
	b, found := Read(m, written)
	if n := len(x.Moves); n == 0 || !found || b.State != x.Moves[n-1].To || !b.Since.Equal(x.Moves[n-1].At) {
		return nil
	}
	return x.Moves
}

// entry returns the move for the history.
func (v Move) entry() map[string]any {
	return map[string]any{"from": v.From, "to": v.To, "when": stamp(v.At), "why": v.Why}
}

// historyOf returns an object's history.
func historyOf(m *dsl.Machine, o *unstructured.Unstructured) []any {
	value, _ := m.Field(dsl.BookHistory).In(o.Object)
	list, _ := value.([]any)
	return slices.Clone(list)
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
	history = append(slices.Clip(history), v.entry())
	return history[max(0, len(history)-most):]
}
