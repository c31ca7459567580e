// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"reflect"
	"sync"
)

// Memo keeps values in the memory of the process, such as connections, caches and what was last reported. Each
// object has a memo, and so does the operator; see [Request]. Do not keep state in a memo alone. The memo of an
// object is lost with the object, by uid: a later object of the same name has another memo. It is also lost when
// the process ends or stops leading. What handlers must know after that belongs in the status, or in another
// object.
//
// The zero value is empty. All methods may be called from several goroutines; shared values need their own lock.
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

// Update changes the value under a key; change gets nil when there is none. The memo is locked meanwhile, so change
// must be quick, and must not use the memo itself.
func (m *Memo) Update(key string, change func(value any) any) { m.update(key, change) }

// Delete removes a key and its value.
func (m *Memo) Delete(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, key)
}

// Empty reports whether the memo has no values.
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

// MemoOf returns the one T in a memo, which is separate from the values with keys. The first call makes it, with
// the zero value. Handlers of one object run one after another and may change it freely; a T in the operator's memo
// is shared, and needs its own lock.
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
