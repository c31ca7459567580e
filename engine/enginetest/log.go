// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// mostLines is how many lines of a test's log are kept: the last ones.
const mostLines = 1000

// testLog keeps the last lines that the engines of a test log, and shows them when the test has failed.
type testLog struct {
	begin time.Time

	mu    sync.Mutex
	lines []string // a ring once there are mostLines
	count int
}

// newTestLog returns a log that is shown at the end of the test. Cleanups that are added later run before that.
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

// text returns the lines that are kept, in order, and says how many are not. It is empty when nothing was logged.
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
