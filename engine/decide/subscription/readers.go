// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package subscription knows the readers of keys, so that a change wakes the readers that it may concern. It is pure.
package subscription

import (
	"slices"
	"sync"
)

// few is how many readers of a key are kept in a list. Most keys have one reader, and a list takes the least memory. A
// few keys have very many readers, for which a set is faster.
const few = 32

// Readers has readers by the keys that they read, and the readers that could not read. The zero value is empty. Its methods
// are safe for concurrent use. A visit must be quick and must not call the Book.
type Readers[K comparable, R comparable] struct {
	mu sync.Mutex
	// by has the readers of keys with few readers. crowds has the readers of keys that have had more.
	by     map[K][]R
	crowds map[K]map[R]struct{}
	size   int
	missed map[R]struct{}
}

// Add subscribes a reader to keys.
func (b *Readers[K, R]) Add(who R, keys ...K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.by == nil {
		b.by = map[K][]R{}
	}
	for _, key := range keys {
		if !b.hasLocked(who, key) {
			b.addLocked(who, key)
			b.size++
		}
	}
}

func (b *Readers[K, R]) hasLocked(who R, key K) bool {
	if crowd, is := b.crowds[key]; is {
		_, has := crowd[who]
		return has
	}
	return slices.Contains(b.by[key], who)
}

func (b *Readers[K, R]) addLocked(who R, key K) {
	crowd, is := b.crowds[key]
	if list := b.by[key]; !is && len(list) < few {
		b.by[key] = append(list, who)
		return
	} else if !is {
		crowd = make(map[R]struct{}, 2*few)
		for _, one := range list {
			crowd[one] = struct{}{}
		}
		if b.crowds == nil {
			b.crowds = map[K]map[R]struct{}{}
		}
		b.crowds[key] = crowd
		delete(b.by, key)
	}
	crowd[who] = struct{}{}
}

// Remove removes a reader from keys.
func (b *Readers[K, R]) Remove(who R, keys ...K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range keys {
		if b.hasLocked(who, key) {
			b.dropLocked(who, key)
			b.size--
		}
	}
}

func (b *Readers[K, R]) dropLocked(who R, key K) {
	if crowd, is := b.crowds[key]; is {
		if delete(crowd, who); len(crowd) == 0 {
			delete(b.crowds, key)
		}
		return
	}
	at := slices.Index(b.by[key], who)
	if b.by[key] = slices.Delete(b.by[key], at, at+1); len(b.by[key]) == 0 {
		delete(b.by, key)
	}
}

// Clear drops all readers.
func (b *Readers[K, R]) Clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.by, b.crowds, b.size, b.missed = nil, nil, 0, nil
}

// Each visits the readers of each of the keys, in any order.
func (b *Readers[K, R]) Each(visit func(R), keys ...K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range keys {
		for _, who := range b.by[key] {
			visit(who)
		}
		for who := range b.crowds[key] {
			visit(who)
		}
	}
}

// Size returns the number of subscriptions: each key counts once for each reader.
func (b *Readers[K, R]) Size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.size
}

// Read calls read. If it fails, EachFailed visits the reader until Recovered is called. Then it calls read once more, because the fault
// may have ended in between without a visit.
func (b *Readers[K, R]) Read(who R, read func() error) error {
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

// Recovered removes a reader that can read again, or that is gone.
func (b *Readers[K, R]) Recovered(who R) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.missed, who)
}

// EachFailed visits the readers that could not read.
func (b *Readers[K, R]) EachFailed(visit func(R)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for who := range b.missed {
		visit(who)
	}
}
