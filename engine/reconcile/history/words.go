// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// wordsMost is how many words a store learns. An operator has a few for each handler; the bound is for those that make handlers' ids
// without end.
const wordsMost = 1024

// words are the texts that many reconciles have. Each has a number, which takes a byte or two where the text would take a dozen. Words are
// learned and never forgotten. The methods may be called by any number of goroutines.
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

// number returns the number of a word, which it learns. It is not known where there are too many, or the word is too long.
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

// full reports whether no word is learned any more.
func (w *words) full() bool {
	v := w.known.Load()
	return v != nil && len(v.texts) == wordsMost
}

// at returns the word with a number.
func (w *words) at(number int) string { return w.known.Load().texts[number] }
