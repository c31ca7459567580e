// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// TestWords holds that words are read as they were written, also by others than those who taught them, and beyond the bound.
func TestWords(t *testing.T) {
	var w words
	text := func(n int) string {
		if n%100 == 0 {
			return strings.Repeat("x", textMost+n)
		}
		return fmt.Sprint("handler-", n%(wordsMost+500))
	}
	var all sync.WaitGroup
	for from := range 2 {
		all.Go(func() {
			for n := from; n < 3*wordsMost; n++ {
				r := Record{words: &w}
				r.Attempt(Attempt{Handler: text(n), Cause: "update", Outcome: "success", Number: n})
				got, want := w.decode(r.data).Attempts[0], text(n)
				if len(want) <= textMost && got.Handler != want || got.Cause != "update" || got.Outcome != "success" || got.Number != n {
					t.Errorf("attempt %d is read as %+v", n, got)
					return
				}
			}
		})
	}
	all.Wait()
	if got := len(w.known.Load().texts); got != wordsMost {
		t.Errorf("%d words are known, want %d", got, wordsMost)
	}
}

// TestAPassOfManyHandlersIsSmall holds that an attempt takes a few bytes once its words are known.
func TestAPassOfManyHandlersIsSmall(t *testing.T) {
	r := Record{words: &words{}}
	for n := range 50 {
		r.Attempt(Attempt{Handler: fmt.Sprint("a-handler-with-a-long-name-", n), Cause: "resync", Outcome: "success", Number: 1})
	}
	if len(r.data) > 50*10 {
		t.Errorf("50 attempts take %d bytes, want at most 500", len(r.data))
	}
}
