// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"sync"
	"testing"
)

func TestALineGivesAllEventsInTheirOrderUntilItIsClosed(t *testing.T) {
	const many = 3 * kept
	l := newLine()
	var names []string
	var working sync.WaitGroup
	working.Go(func() {
		for e := range l.events {
			names = append(names, e.name)
		}
	})
	for i := range many {
		l.put(event{name: strconv.Itoa(i)})
	}
	l.close()
	working.Wait()
	if len(names) != many {
		t.Fatalf("%d events came, want %d", len(names), many)
	}
	for i, name := range names {
		if name != strconv.Itoa(i) {
			t.Fatalf("event %d is %s", i, name)
		}
	}
}
