// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// errorMarks occur in lines of errors: in the operator's JSON, and in [Run]'s plain text.
var errorMarks = [...]string{`"level":"error"`, "ERROR "}

// Lines are log lines that a test can wait for. All methods are safe for use by several goroutines.
type Lines struct {
	mu      sync.Mutex
	lines   []string
	partial []byte
	echo    io.Writer // nil for none
	ended   bool
	changed signal
}

func newLines() *Lines { return &Lines{changed: newSignal()} }

// notForPeople matches log lines that contain a formatted Go value instead of its meaning, or a stack trace.
var notForPeople = regexp.MustCompile(`&\{|\\u0026\{|0xc[0-9a-f]{8}|\(\*[a-z][a-z0-9]*\.[A-Z]|goroutine \d+ \[|"stacktrace":`)

// checkWords fails the test for such lines. Only a panic may have a stack trace.
func (l *Lines) checkWords(t testing.TB) {
	t.Helper()
	for _, line := range l.All() {
		if notForPeople.MatchString(line) && !strings.Contains(line, "panic") {
			t.Errorf("this line of the log is not for people: %s", line)
		}
	}
}

// newEcho returns lines that are also printed in the test's output, and that checkWords checks.
func newEcho(t testing.TB) *Lines {
	l := newLines()
	l.echo = t.Output()
	t.Cleanup(func() {
		l.checkWords(t)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.echo = nil // writing to it after the test would panic
	})
	return l
}

// Write adds the lines of a text.
func (l *Lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partial = append(l.partial, text...)
	for {
		line, rest, found := bytes.Cut(l.partial, []byte("\n"))
		if !found {
			return len(text), nil
		}
		l.addLocked(string(line))
		l.partial = rest
	}
}

// All returns all lines so far.
func (l *Lines) All() []string { return l.With("") }

// With returns the lines so far that contain substring.
func (l *Lines) With(substring string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.lines), func(line string) bool { return !strings.Contains(line, substring) })
}

// Errors returns the lines so far that are errors.
func (l *Lines) Errors() []string {
	return slices.DeleteFunc(l.All(), func(line string) bool {
		return !slices.ContainsFunc(errorMarks[:], func(mark string) bool { return strings.Contains(line, mark) })
	})
}

// Await returns the first line that contains substring, and waits for it if necessary. It fails the test if there
// is none in time, or no more lines can come.
func (l *Lines) Await(t testing.TB, substring string) string {
	t.Helper()
	return l.AwaitTimes(t, 1, substring)
}

// AwaitTimes is Await for the n-th such line from the start.
func (l *Lines) AwaitTimes(t testing.TB, n int, substring string) string {
	t.Helper()
	if err := l.wait(time.After(Patience), n, substring); err != nil {
		t.Fatal(err)
	}
	return l.With(substring)[n-1]
}

func (l *Lines) wait(limit <-chan time.Time, n int, substring string) error {
	for {
		l.mu.Lock()
		ended, changed := l.ended, l.changed.wait()
		l.mu.Unlock()
		found := len(l.With(substring))
		if found >= n {
			return nil
		}
		if ended {
			return fmt.Errorf("waiting for line %d with %q: the output ended after %d", n, substring, found)
		}
		select {
		case <-changed:
		case <-limit:
			return fmt.Errorf("waiting for line %d with %q: %w after %d", n, substring, errLate, found)
		}
	}
}

// end says that no more lines will come.
func (l *Lines) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.partial) > 0 {
		l.addLocked(string(l.partial))
		l.partial = nil
	}
	l.ended = true
	l.changed.raise()
}

func (l *Lines) addLocked(line string) {
	l.lines = append(l.lines, line)
	if l.echo != nil {
		fmt.Fprintln(l.echo, line)
	}
	l.changed.raise()
}

var errLate = errors.New("not in time")

// signal wakes all that wait for a change. Its owner's lock guards it.
type signal struct{ next chan struct{} }

func newSignal() signal { return signal{make(chan struct{})} }

func (s *signal) wait() <-chan struct{} { return s.next }

func (s *signal) raise() {
	close(s.next)
	s.next = make(chan struct{})
}
