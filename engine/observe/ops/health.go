// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"
	"strings"
	"time"
)

// Health is the state of an object as its operator sees it.
type Health string

// The values of Health.
const (
	// Ready: its handlers are done, and the condition Ready that the engine may keep is not False.
	Ready Health = "ready"
	// Waits: a handler waits for other objects, the object waits for its children to be ready, or for the cache.
	Waits Health = "waiting"
	// Failing: a handler has failed, and is tried again or has failed for good, or the object loops.
	Failing Health = "failing"
	// Held: it is being deleted, and a handler that failed for good holds it.
	Held Health = "held"
	// Paused: it, its namespace or the operator is paused, and no handler of it runs.
	Paused Health = "paused"
)

// Healths returns all values.
func Healths() []Health { return []Health{Ready, Waits, Failing, Held, Paused} }

// ObjectHealth is the health of an object, with the reasons.
type ObjectHealth struct {
	Health
	// Open are the unfinished handlers, and the reason of a condition Ready that is False; nil if the object is ready.
	Open []Open
}

// Open says why a handler of an object is not finished.
type Open struct {
	// Handler is empty if the reason is not about a handler.
	Handler string
	// Health is [Waits], [Failing] or [Paused].
	Health Health
	// Reason is the rest of a line that begins with the handler, as in "waits for Secret shop/registry".
	Reason string
	// Blocked: it waits for another, unfinished handler of the object.
	Blocked bool
	// Logged: the log has one line for all objects that wait for this.
	Logged bool
}

// String names the handler, and says why.
func (o Open) String() string {
	if o.Handler == "" {
		return o.Reason
	}
	return "handler " + o.Handler + " " + o.Reason
}

// Unready are the objects of a resource with the same health.
type Unready struct {
	Health Health
	// Count is their number. Oldest are the first few of them, by the time when they got this health.
	Count  int
	Oldest []UnreadyObject
}

// UnreadyObject is an object that is not ready.
type UnreadyObject struct {
	// Object has the namespace and the name.
	Object string
	Since  time.Time
	Open   []Open
}

// String says for how long it is not ready, and why.
func (s UnreadyObject) String() string {
	var why []string
	for _, o := range s.Open {
		why = append(why, o.String())
	}
	return fmt.Sprintf("for %s: %s", time.Since(s.Since).Truncate(time.Second), strings.Join(why, "; "))
}

// Checks returns a check with their number, and one for each of the oldest. Waiting and paused objects are no fault.
func (s Unready) Checks(resource string) []Check {
	state := Warn
	if s.Health == Waits || s.Health == Paused {
		state = Pass
	}
	about := map[Health]string{Waits: "waiting/", Failing: "failing/", Held: "held/", Paused: "paused/"}[s.Health] + resource
	count := fmt.Sprintf("%d objects", s.Count)
	switch more := s.Count - len(s.Oldest); {
	case s.Count == 1:
		count = "1 object"
	case more > 0:
		count = fmt.Sprintf("%d objects; the %d of the longest time follow, %d more do not", s.Count, len(s.Oldest), more)
	}
	out := []Check{{Name: about, State: state, Message: count}}
	for _, one := range s.Oldest {
		out = append(out, Check{Name: about + "/" + one.Object, State: state, Message: one.String(), OfObject: true})
	}
	return out
}
