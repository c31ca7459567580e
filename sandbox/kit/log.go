// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// mostLines is how many of the last lines of a test's log are kept.
const mostLines = 1000

// testLog keeps the last log lines of a test's engines, and prints them if the test has failed.
type testLog struct {
	begin time.Time

	mu    sync.Mutex
	lines []string // a ring buffer from mostLines on
	count int
}

// newTestLog returns a log that is printed at the end of the test, after cleanups that are registered later.
func newTestLog(t testing.TB) *testLog {
	l := &testLog{begin: time.Now()}
	t.Cleanup(func() {
		if text := l.text(); t.Failed() && text != "" {
			t.Log(text)
		}
	})
	return l
}

// logger returns a logger for a process.
func (l *testLog) logger(process string) logr.Logger {
	return funcr.New(l.add, funcr.Options{Verbosity: 1}).WithName(process)
}

// add keeps a line with the time since the test began.
func (l *testLog) add(from, line string) {
	line = fmt.Sprintf("%v %s: %s", time.Since(l.begin), from, line)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) < mostLines {
		l.lines = append(l.lines, line)
	} else {
		l.lines[l.count%mostLines] = line
	}
	l.count++
}

// text returns the kept lines in order, and says how many were dropped. It is empty if nothing was logged.
func (l *testLog) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count == 0 {
		return ""
	}
	head, oldest := "the engine's log, with the time since the test began:\n", 0
	if lost := l.count - len(l.lines); lost > 0 {
		head, oldest = fmt.Sprintf("%s(%d earlier lines are left out)\n", head, lost), l.count%mostLines
	}
	return head + strings.Join(append(l.lines[oldest:len(l.lines):len(l.lines)], l.lines[:oldest]...), "\n")
}
