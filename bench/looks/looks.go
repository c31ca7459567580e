// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package looks is how a measured program reports to the measuring one, on its standard output, that it has looked at
// everything.
package looks

import (
	"io"
	"sync"
)

// Looked is the line that says that as many objects as were expected have been looked at.
const Looked = "looked"

// Reporter reports it. Its methods may be called by any number of goroutines.
type Reporter struct {
	expected int
	out      io.Writer

	mu   sync.Mutex
	seen map[string]struct{}
}

// New returns a Reporter that writes Looked once, when it has seen that many objects; never when it expects none.
func New(out io.Writer, expected int) *Reporter {
	return &Reporter{expected: expected, out: out, seen: make(map[string]struct{}, expected)}
}

// Saw notes that an object is looked at.
func (r *Reporter) Saw(name string) error {
	if r.expected == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		return nil
	}
	r.seen[name] = struct{}{}
	if len(r.seen) < r.expected {
		return nil
	}
	r.seen = nil
	_, err := io.WriteString(r.out, Looked+"\n")
	return err
}
