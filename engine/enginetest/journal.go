// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// patience is how long Await waits in real time. It bounds a test that fails and no other.
const patience = time.Minute

// Journal keeps the calls of handlers, in order. The zero value is ready to use, by any number of
// goroutines, in a bubble and out of it: tests against a real cluster use it too.
type Journal struct {
	mu sync.Mutex
	// calls are all that there were; Take has told of those before taken.
	calls []Call
	taken int
	// changed is closed with each call; nil while nobody waits.
	changed chan struct{}
}

// Call is one attempt of a handler, as it began.
type Call struct {
	// Handler is the id under which it was noted.
	Handler string
	Cause   dsl.Cause
	Attempt int
	// Object is what the handler saw. It must not be changed.
	Object *unstructured.Unstructured
	At     time.Time
	// line is a line of the test's own; all else is empty then.
	line string
}

// String writes the call as in "announce update", or "announce update 2" for the second attempt.
func (c Call) String() string {
	if c.line != "" {
		return c.line
	}
	if c.Attempt > 1 {
		return fmt.Sprintf("%s %s %d", c.Handler, c.Cause, c.Attempt)
	}
	return c.Handler + " " + string(c.Cause)
}

// Note returns a handler that notes each of its calls and then does what is given: at its first
// call the first of them, at the next the second, and the last one from then on. Without any, and
// where nil is given, it succeeds.
func (j *Journal) Note(id string, then ...dsl.Func) dsl.Func {
	var n atomic.Int32
	return func(ctx context.Context, r *dsl.Request) error {
		j.add(Call{Handler: id, Cause: r.Cause, Attempt: r.Attempt, Object: r.Object, At: time.Now()})
		if len(then) == 0 {
			return nil
		}
		if next := then[min(int(n.Add(1)), len(then))-1]; next != nil {
			return next(ctx, r)
		}
		return nil
	}
}

// Add adds a line of the test's own, as of something that a handler saw.
func (j *Journal) Add(line string) { j.add(Call{line: line, At: time.Now()}) }

// Take returns what was noted since it was called last, a line for each.
func (j *Journal) Take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var lines []string
	for _, c := range j.calls[j.taken:] {
		lines = append(lines, c.String())
	}
	j.taken = len(j.calls)
	return lines
}

// Len returns how many calls there were so far, lines of the test's own among them.
func (j *Journal) Len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.calls)
}

// Of returns the calls of a handler for objects of that name so far. An empty handler stands for
// all.
func (j *Journal) Of(handler, name string) []Call {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.of(handler, name)
}

// Await waits until a handler was called n times for an object of that name, and returns the calls.
// It fails the test when that takes longer than a minute.
func (j *Journal) Await(t testing.TB, n int, handler, name string) []Call {
	t.Helper()
	late := time.After(patience)
	for {
		got, changed := j.look(handler, name)
		if len(got) >= n {
			return got
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("handler %q was not called %d times for %s; its calls were %v", handler, n, name, j.Of("", name))
		}
	}
}

// look returns the calls so far, and what is closed with the next one.
func (j *Journal) look(handler, name string) ([]Call, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.changed == nil {
		j.changed = make(chan struct{})
	}
	return j.of(handler, name), j.changed
}

func (j *Journal) of(handler, name string) []Call {
	return slices.DeleteFunc(slices.Clone(j.calls), func(c Call) bool {
		return c.Object == nil || handler != "" && c.Handler != handler || c.Object.GetName() != name
	})
}

func (j *Journal) add(c Call) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.calls = append(j.calls, c)
	if j.changed != nil {
		close(j.changed)
		j.changed = nil
	}
}
