// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"reflect"
	"sync"
)

// Memo keeps values in the memory of the process: connections, caches, what was told last. There is one for each object and
// one for the operator; see [Request]. Nothing that is true may live there alone. An object's memo is gone with the object (with
// its uid: one of the same name that comes later has another), with the process, and when the process stops leading. What handlers
// must know after that belongs into the status, or into another object.
//
// The zero value is empty. All methods may be called from several goroutines; values that are shared guard themselves.
type Memo struct {
	mu     sync.Mutex
	values map[any]any
}

// Get returns the value that is kept under a key.
func (m *Memo) Get(key string) (value any, found bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, found = m.values[key]
	return value, found
}

// Set keeps a value under a key.
func (m *Memo) Set(key string, value any) {
	m.Update(key, func(any) any { return value })
}

// Update changes the value that is kept under a key, nil where there is none. Nobody else reads or changes the memo
// meanwhile, so the function must be quick, and not ask the memo itself.
func (m *Memo) Update(key string, change func(value any) any) { m.update(key, change) }

// Delete forgets what is kept under a key.
func (m *Memo) Delete(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, key)
}

// Empty reports whether nothing is kept.
func (m *Memo) Empty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.values) == 0
}

func (m *Memo) update(key any, change func(any) any) (value any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value = change(m.values[key])
	if m.values == nil {
		m.values = map[any]any{}
	}
	m.values[key] = value
	return value
}

// MemoOf returns the one T that a memo keeps beside what has keys; the first call makes it, zero. Handlers of one object
// run one after another and may change it freely; what others share, as the operator's, has a lock of its own.
//
//	type session struct{ conn *Conn }
//	…
//	s := dsl.MemoOf[session](r.Memo)
func MemoOf[T any](m *Memo) *T {
	return m.update(reflect.TypeFor[T](), func(known any) any {
		if known == nil {
			return new(T)
		}
		return known
	}).(*T)
}
