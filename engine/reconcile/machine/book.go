// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package machine runs state machines over objects: it reads an object's state from the progress in the status, decides
// what to do, does it, and writes the new state into a patch. No other package knows the form of the progress. It sends
// no requests: actions use the request that they get.
package machine

import (
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

// Read reads an object's progress. It is not found if the object has none, or another object's. Since is zero if it is
// invalid or in the future: otherwise anyone who may write the status could postpone time limits.
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

// tree returns the progress for the status, with nil for missing fields.
func (b Book) tree(uid types.UID) map[string]any {
	out := map[string]any{
		dsl.BookState: b.State, dsl.BookSince: stamp(b.Since), dsl.BookEntered: stamp(b.Entered), dsl.BookUID: string(uid), dsl.BookFailures: nil,
	}
	if b.Failures > 0 {
		out[dsl.BookFailures] = b.Failures
	}
	return out
}
