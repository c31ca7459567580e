// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package tell is how a measured program tells the one that measures it what it has seen: one
// line of JSON on its standard output each.
package tell

import (
	"encoding/json"
	"io"
	"sync"
	"time"
)

// Line is what is told.
type Line struct {
	// Looked: as many different objects as were expected have been looked at.
	Looked bool `json:"looked,omitempty"`
	// Name and Replicas are of one object as its handler got it, At is when, in nanoseconds
	// since the epoch.
	Name     string `json:"name,omitempty"`
	Replicas int64  `json:"replicas,omitempty"`
	At       int64  `json:"at,omitempty"`
	// Objects, Heap and Bytes tell of a cache: how many objects it has, what they take of the
	// heap, and the size of their JSON without managedFields, both in bytes.
	Objects int   `json:"objects,omitempty"`
	Heap    int64 `json:"heap,omitempty"`
	Bytes   int64 `json:"bytes,omitempty"`
}

// Teller tells. Its methods may be called by any number of goroutines.
type Teller struct {
	expected int
	traced   bool

	mu   sync.Mutex
	out  *json.Encoder
	seen map[string]bool
}

// New returns a teller that says Looked once when it has seen that many objects and, when traced,
// tells of each look from then on.
func New(out io.Writer, expected int, traced bool) *Teller {
	return &Teller{expected: expected, traced: traced, out: json.NewEncoder(out), seen: map[string]bool{}}
}

// Saw notes that an object is looked at.
func (t *Teller) Saw(name string, replicas int64) error {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.seen == nil && t.traced:
		return t.out.Encode(Line{Name: name, Replicas: replicas, At: now.UnixNano()})
	case t.seen == nil || t.seen[name]:
		return nil
	}
	t.seen[name] = true
	if len(t.seen) < t.expected {
		return nil
	}
	t.seen = nil
	return t.out.Encode(Line{Looked: true})
}

// Tell tells a line.
func (t *Teller) Tell(l Line) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.out.Encode(l)
}
