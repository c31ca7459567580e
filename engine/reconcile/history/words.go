// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// wordsMost is how many words a store learns. An operator has a few for each handler; the bound is for handlers with
// ever new ids.
const wordsMost = 1024

// words are texts that many reconciles have. Each has a number, which takes a byte or two instead of a dozen. Words are
// learned and never forgotten. The methods are safe for concurrent use.
type words struct {
	known atomic.Pointer[vocabulary]
	// mu is held while a word is learned.
	mu sync.Mutex
}

// vocabulary is never changed, only replaced.
type vocabulary struct {
	numbers map[string]int
	texts   []string
}

// number returns the number of a word, and learns new words. Known is false if there are too many words, or the word is
// too long.
func (w *words) number(text string) (number int, known bool) {
	if v := w.known.Load(); v != nil {
		if number, known = v.numbers[text]; known {
			return number, true
		}
	}
	if len(text) > textMost || w.full() {
		return 0, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.known.Load()
	if v == nil {
		v = &vocabulary{}
	}
	if number, known = v.numbers[text]; known || len(v.texts) == wordsMost {
		return number, known
	}
	next := &vocabulary{numbers: maps.Clone(v.numbers), texts: append(slices.Clip(v.texts), text)}
	if next.numbers == nil {
		next.numbers = map[string]int{}
	}
	number = len(v.texts)
	next.numbers[text] = number
	w.known.Store(next)
	return number, true
}

// full reports whether the vocabulary has reached its limit.
func (w *words) full() bool {
	v := w.known.Load()
	return v != nil && len(v.texts) == wordsMost
}

// at returns the word with a number.
func (w *words) at(number int) string { return w.known.Load().texts[number] }
