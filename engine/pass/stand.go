// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pass

import (
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/ops"
)

// End is what is known at the end of a pass, to say how its object stands.
type End struct {
	Readers []book.Reader
	// Entry returns a handler's entry in the book.
	Entry func(book.Reader) book.Entry
	// Blind says why it cannot be told whether a handler sees the object, empty where it can.
	Blind func(*dsl.Handler) string
	// Blocker names the handler that keeps another one from running, empty for none.
	Blocker func(*dsl.Handler) string
	// Held: the deletion of the object waits. Children: it waits for children that are left.
	Held, Children bool
}

// Stand says how an object stands after the pass, and why.
func (js Jobs) Stand(e End) ops.Stand {
	out := ops.Stand{Standing: ops.Ready}
	for _, reader := range e.Readers {
		open := js.open(reader, e)
		if open.Standing == "" {
			continue
		}
		out.Open = append(out.Open, open)
		if out.Standing != ops.Failing && !open.Blocked {
			out.Standing = open.Standing
		}
	}
	if e.Children {
		out.Open = append(out.Open, ops.Open{Standing: ops.Waits, Reason: "waits for its children to be gone"})
	}
	if e.Held {
		out.Standing = ops.Held
	}
	return out
}

// open says why a handler is not through; its standing is empty where it is, or has nothing to do.
func (js Jobs) open(reader book.Reader, e End) ops.Open {
	r, out := js.Record(reader, e.Entry(reader)), ops.Open{Handler: reader.ID, Standing: ops.Failing}
	blind := e.Blind(reader.Handler)
	switch {
	case blind != "":
		out.Reason = "filter failed: " + blind
	case r.Failed:
		out.Reason = "failed for good: " + r.Message
	case !r.Done && r.Worst() > 0 && (!r.Waiting || r.Parts != nil):
		out.Reason = "is tried again: " + r.Message
	case r.Waiting:
		out.Standing, out.Reason = ops.Waits, waitsFor(r.Message)
		j := js.Of(reader)
		out.Logged = j != nil && j.Logged
	default:
		j := js.Of(reader)
		if j == nil || j.Ran || r.Done || len(reader.After) == 0 {
			return ops.Open{}
		}
		other := e.Blocker(reader.Handler)
		if other == "" {
			return ops.Open{}
		}
		out.Standing, out.Reason, out.Blocked = ops.Waits, "waits for handler "+other, true
	}
	return out
}

// waitsFor is the message of a wait, as the rest of a line.
func waitsFor(message string) string {
	message = strings.Join(strings.Fields(message), " ")
	if what, is := strings.CutPrefix(message, "waiting for "); is {
		return "waits for " + what
	}
	return "waits: " + message
}
