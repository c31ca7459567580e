// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// EventType is the type of a change as a watch event has it.
type EventType string

// The types of changes.
const (
	Added    EventType = "ADDED"
	Modified EventType = "MODIFIED"
	Deleted  EventType = "DELETED"
)

// Change is one write.
type Change struct {
	Version int64
	What    EventType
	// Row is the written object; for a removal the last one, with the removal's version.
	Row *Row
	// Before is the object before; nil for a new one.
	Before *Row
}

// Gone returns the object before, with the version of the change: a watch shows it so when its selector has lost
// the object.
func (c Change) Gone() *Row {
	gone := c.Before.Tree().DeepCopy()
	gone.SetResourceVersion(strconv.FormatInt(c.Version, 10))
	return NewRow(gone)
}

// Store has the objects of one resource.
type Store struct {
	rows rows
	// changes are those after the version forgotten.
	changes   []Change
	forgotten int64
	limit     int
}

// New returns an empty store that remembers at least limit changes, and at most twice as many; 0 means all.
func New(limit int) *Store { return &Store{limit: limit} }

// Get returns an object, or nil.
func (s *Store) Get(namespace, name string) *Row { return s.rows.get(namespace, name) }

// In returns the objects of a namespace by name, in a slice of the caller's own. An empty namespace means all.
func (s *Store) In(namespace string) []*Row { return s.rows.in(namespace) }

// Commit stores a written object, or removes it if that is what the change is. The object has the version of the
// write, and must not be changed any more.
func (s *Store) Commit(what EventType, o *unstructured.Unstructured) Change {
	row := NewRow(o)
	c := Change{Version: row.Version, What: what, Row: row, Before: s.Get(row.Namespace, row.Name)}
	if what == Deleted {
		s.rows.remove(row.Namespace, row.Name)
	} else {
		s.rows.put(row)
	}
	s.changes = append(s.changes, c)
	if s.limit > 0 && len(s.changes) >= 2*s.limit {
		s.forget(len(s.changes) - s.limit)
	}
	return c
}

// forget drops the oldest changes. The array is a new one, so that the rows of dropped changes become garbage.
func (s *Store) forget(n int) {
	s.forgotten = s.changes[n-1].Version
	s.changes = append(make([]Change, 0, 2*s.limit), s.changes[n:]...)
}

// Forget drops all changes up to now, a version.
func (s *Store) Forget(now int64) { s.changes, s.forgotten = nil, now }

// Forgotten is the version up to which changes have been dropped.
func (s *Store) Forgotten() int64 { return s.forgotten }

// Last returns the version of the last change.
func (s *Store) Last() int64 {
	if n := len(s.changes); n > 0 {
		return s.changes[n-1].Version
	}
	return s.forgotten
}

// Since returns the changes after a version. It is false if some of them have been dropped.
func (s *Store) Since(version int64) (changes []Change, known bool) {
	if version < s.forgotten {
		return nil, false
	}
	at, _ := slices.BinarySearchFunc(s.changes, version+1, func(c Change, version int64) int { return int(c.Version - version) })
	return s.changes[at:], true
}

// At returns the objects of a namespace as they were at a version. It is false if that cannot be found out any more.
func (s *Store) At(version int64, namespace string) (list []*Row, known bool) {
	later, known := s.Since(version)
	if !known || len(later) == 0 {
		return s.In(namespace), known
	}
	then := s.rows.clone()
	for _, c := range slices.Backward(later) {
		if c.Before == nil {
			then.remove(c.Row.Namespace, c.Row.Name)
		} else {
			then.put(c.Before)
		}
	}
	return then.in(namespace), true
}

// Backup records the objects. The returned function restores them, and drops the changes after a version.
func (s *Store) Backup() (restore func(version int64)) {
	saved := s.rows.clone()
	return func(version int64) {
		s.rows = saved.clone()
		s.truncate(version)
	}
}

// Empty removes all objects, and drops the changes after a version.
func (s *Store) Empty(version int64) {
	s.rows = rows{}
	s.truncate(version)
}

func (s *Store) truncate(version int64) {
	s.changes = slices.DeleteFunc(slices.Clone(s.changes), func(c Change) bool { return c.Version > version })
}
