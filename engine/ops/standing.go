// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"
	"strings"
	"time"
)

// Standing is how an object stands with an operator.
type Standing string

// The standings.
const (
	// Ready: its handlers are done.
	Ready Standing = "ready"
	// Waits: a handler waits for what others do, or the object for the cache.
	Waits Standing = "waiting"
	// Failing: a handler has failed, and is tried again or has failed for good.
	Failing Standing = "failing"
	// Held: it is to be deleted, and a handler that failed for good keeps it.
	Held Standing = "held"
)

// Standings returns all standings.
func Standings() []Standing { return []Standing{Ready, Waits, Failing, Held} }

// Stand is how an object stands, and why.
type Stand struct {
	Standing
	// Open is what its handlers are not through with; nil where it is ready.
	Open []Open
}

// Open says why a handler of an object is not through.
type Open struct {
	// Handler is empty for what passes do themselves.
	Handler string
	// Standing is [Waits] or [Failing].
	Standing Standing
	// Reason is the rest of a line that begins with the handler, as in "waits for Secret shop/registry".
	Reason string
	// Blocked: it waits for another handler of the object, which is not through.
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

// Standers are the objects of a resource that stand one way.
type Standers struct {
	Standing Standing
	// Count is how many there are. Oldest are those that have stood so for the longest time, these first.
	Count  int
	Oldest []Stander
}

// Stander is an object that is not ready.
type Stander struct {
	// Object is its namespace and name.
	Object string
	Since  time.Time
	Open   []Open
}

// Checks are the lines about them: how many there are, and one for each that is named. That objects wait is no fault.
func (s Standers) Checks(resource string) []Check {
	state := Warn
	if s.Standing == Waits {
		state = Pass
	}
	about := map[Standing]string{Waits: "waiting/", Failing: "failing/", Held: "held/"}[s.Standing] + resource
	count := fmt.Sprintf("%d objects", s.Count)
	switch more := s.Count - len(s.Oldest); {
	case s.Count == 1:
		count = "1 object"
	case more > 0:
		count = fmt.Sprintf("%d objects; the %d of the longest time follow, %d more do not", s.Count, len(s.Oldest), more)
	}
	out := []Check{{Name: about, State: state, Message: count}}
	for _, one := range s.Oldest {
		var why []string
		for _, o := range one.Open {
			why = append(why, o.String())
		}
		message := fmt.Sprintf("for %s: %s", time.Since(one.Since).Truncate(time.Second), strings.Join(why, "; "))
		out = append(out, Check{Name: about + "/" + one.Object, State: state, Message: message, OfObject: true})
	}
	return out
}
