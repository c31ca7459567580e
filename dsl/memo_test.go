// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"sync"
	"testing"
)

// TestAMemoIsSharedBetweenGoroutines holds that no change is lost. The race detector looks at the rest.
func TestAMemoIsSharedBetweenGoroutines(t *testing.T) {
	type counter struct {
		sync.Mutex
		n int
	}
	var m Memo
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			m.Update("n", func(value any) any { n, _ := value.(int); return n + 1 })
			c := MemoOf[counter](&m)
			c.Lock()
			c.n++
			c.Unlock()
		})
	}
	all.Wait()
	if n, _ := m.Get("n"); n != 20 || MemoOf[counter](&m).n != 20 {
		t.Errorf("it counts %v and %v, want 20", n, MemoOf[counter](&m).n)
	}
}

// TestWhatAMemoKeeps holds what is there and what is not.
func TestWhatAMemoKeeps(t *testing.T) {
	var m Memo
	if _, found := m.Get("a"); found || !m.Empty() {
		t.Error("a new one keeps something")
	}
	m.Set("a", nil)
	if value, found := m.Get("a"); value != nil || !found || m.Empty() {
		t.Errorf("under a it keeps %v, %v", value, found)
	}
	m.Delete("a")
	if _, found := m.Get("a"); found || !m.Empty() {
		t.Error("what was deleted is there")
	}
	*MemoOf[int](&m) = 3
	if *MemoOf[int](&m) != 3 || *MemoOf[int64](&m) != 0 {
		t.Error("a type's value is not its own")
	}
}
