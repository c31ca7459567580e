// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kit

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

// patience is how long Await waits in real time. Only a failing test waits that long.
const patience = time.Minute

// Journal records the calls of handlers, in order. The zero value is ready to use. It is safe for use by several
// goroutines, in a bubble and outside of it: tests against a real cluster use it, too.
type Journal struct {
	mu sync.Mutex
	// calls are all calls so far; Take has returned those before taken.
	calls []Call
	taken int
	// changed is closed at each call; nil while no test waits.
	changed chan struct{}
}

// Call is the beginning of an attempt of a handler.
type Call struct {
	// Handler is the id given to Note.
	Handler string
	Cause   dsl.Cause
	Attempt int
	// Object is the object that the handler saw. It must not be changed.
	Object *unstructured.Unstructured
	At     time.Time
	// line is a line that the test has added; the other fields are empty then.
	line string
}

// String formats the call as in "announce update", or "announce update 2" for the second attempt.
func (c Call) String() string {
	if c.line != "" {
		return c.line
	}
	if c.Attempt > 1 {
		return fmt.Sprintf("%s %s %d", c.Handler, c.Cause, c.Attempt)
	}
	return c.Handler + " " + string(c.Cause)
}

// Note returns a handler that records each of its calls and then calls one of the given functions: the first
// function at its first call, the second at the next, and the last one from then on. It succeeds without functions,
// and for a nil function.
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

// Add adds a line of the test itself, for example of something that a handler saw.
func (j *Journal) Add(line string) { j.add(Call{line: line, At: time.Now()}) }

// Take returns the records since the last call, one line each.
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

// Len returns the number of records so far, including lines of the test itself.
func (j *Journal) Len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.calls)
}

// Of returns the calls so far of a handler for objects of that name. An empty handler means all.
func (j *Journal) Of(handler, name string) []Call {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.of(handler, name)
}

// Await waits until a handler was called n times for an object of that name, and returns the calls. It fails the
// test after a minute.
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

// look returns the calls so far, and a channel that is closed at the next one.
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
