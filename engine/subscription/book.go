// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package subscription knows who reads what, so that a change wakes those whom it may concern. It is pure.
package subscription

import (
	"slices"
	"sync"
)

// Reader is somebody who reads. Compare orders readers; equal ones are one.
type Reader[R any] interface {
	comparable
	Compare(R) int
}

// Book has readers by the keys of what they read, and those that could not read. The zero value is empty. The methods may be called by
// any number of goroutines. A visit must be quick and must not call the book.
type Book[K comparable, R Reader[R]] struct {
	mu sync.Mutex
	// by has lists, which are sorted: most keys have one reader, and some have very many.
	by     map[K][]R
	size   int
	missed map[R]struct{}
}

// Add subscribes a reader to keys.
func (b *Book[K, R]) Add(who R, keys ...K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.by == nil {
		b.by = map[K][]R{}
	}
	for _, key := range keys {
		if at, found := slices.BinarySearchFunc(b.by[key], who, R.Compare); !found {
			b.by[key] = slices.Insert(b.by[key], at, who)
			b.size++
		}
	}
}

// Drop is the opposite of Add.
func (b *Book[K, R]) Drop(who R, keys ...K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range keys {
		at, found := slices.BinarySearchFunc(b.by[key], who, R.Compare)
		if !found {
			continue
		}
		b.size--
		if b.by[key] = slices.Delete(b.by[key], at, at+1); len(b.by[key]) == 0 {
			delete(b.by, key)
		}
	}
}

// Clear drops all readers.
func (b *Book[K, R]) Clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.by, b.size, b.missed = nil, 0, nil
}

// Each visits the readers of keys, for each of the keys.
func (b *Book[K, R]) Each(visit func(R), keys ...K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range keys {
		for _, who := range b.by[key] {
			visit(who)
		}
	}
}

// Size is the number of subscriptions: each key counts once for each reader.
func (b *Book[K, R]) Size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.size
}

// Try returns why nothing can be read now, as read says. The reader is visited then until Found. It reads once more, because
// the end of a fault before that has not visited it.
func (b *Book[K, R]) Try(who R, read func() error) error {
	if err := read(); err == nil {
		return nil
	}
	b.mu.Lock()
	if b.missed == nil {
		b.missed = map[R]struct{}{}
	}
	b.missed[who] = struct{}{}
	b.mu.Unlock()
	return read()
}

// Found is called for a reader that can read again, or that is gone.
func (b *Book[K, R]) Found(who R) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.missed, who)
}

// EachMissed visits the readers that could not read.
func (b *Book[K, R]) EachMissed(visit func(R)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for who := range b.missed {
		visit(who)
	}
}
