// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package looks is how a measured program reports to the measuring one what it has seen, on its standard output: that
// it has looked at everything, at once, and when it was called for each change, when it stops.
package looks

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"sync"
	"time"
)

// Looked is the line that says that as many objects as were expected have been looked at.
const Looked = "looked"

// Look is a look at an object as a handler got it.
type Look struct {
	// At is when, in nanoseconds since the epoch.
	At int64
	// Name and Replicas are the object's.
	Name     string
	Replicas int64
}

// Reporter reports looks. Its methods may be called by any number of goroutines.
type Reporter struct {
	expected int
	traced   bool
	out      io.Writer

	mu    sync.Mutex
	seen  map[string]struct{}
	looks []Look
}

// New returns a Reporter that writes Looked once when it has seen that many objects and, when traced, keeps each look from
// then on.
func New(out io.Writer, expected int, traced bool) *Reporter {
	t := &Reporter{expected: expected, traced: traced, out: out}
	if expected > 0 {
		t.seen = make(map[string]struct{}, expected)
	}
	return t
}

// Wanted reports whether looks are to be reported. If not, Saw need not be called.
func (t *Reporter) Wanted() bool { return t.expected > 0 || t.traced }

// Saw notes that an object is looked at.
func (t *Reporter) Saw(name string, replicas int64) error {
	if !t.Wanted() {
		return nil
	}
	now := time.Now().UnixNano()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen == nil {
		if t.traced {
			t.looks = append(t.looks, Look{now, name, replicas})
		}
		return nil
	}
	t.seen[name] = struct{}{}
	if len(t.seen) < t.expected {
		return nil
	}
	t.seen = nil
	_, err := io.WriteString(t.out, Looked+"\n")
	return err
}

// Flush writes the looks that were kept.
func (t *Reporter) Flush() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := bufio.NewWriter(t.out)
	var line []byte
	for _, l := range t.looks {
		line = strconv.AppendInt(line[:0], l.At, 10)
		line = append(append(append(line, ' '), l.Name...), ' ')
		line = append(strconv.AppendInt(line, l.Replicas, 10), '\n')
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	t.looks = nil
	return out.Flush()
}

// Parse reads a line that Flush has written.
func Parse(line []byte) (Look, bool) {
	parts := bytes.Split(line, []byte{' '})
	if len(parts) != 3 {
		return Look{}, false
	}
	at, errAt := strconv.ParseInt(string(parts[0]), 10, 64)
	replicas, errReplicas := strconv.ParseInt(string(parts[2]), 10, 64)
	return Look{at, string(parts[1]), replicas}, errAt == nil && errReplicas == nil
}
