// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// Log collects the lines of an operator's log.
type Log struct {
	mu    sync.Mutex
	lines []string
}

// Logger returns a logger that writes to the log, without details.
func (l *Log) Logger() logr.Logger { return l.logger("", 0) }

// logger returns one for lines that have some words, up to a verbosity.
func (l *Log) logger(words string, verbosity int) logr.Logger {
	return funcr.New(func(prefix, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if strings.Contains(args, words) {
			l.lines = append(l.lines, prefix+args)
		}
	}, funcr.Options{Verbosity: verbosity})
}

// Lines returns the lines since the last Take.
func (l *Log) Lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// Take returns the lines since the last Take.
func (l *Log) Take() (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	out, l.lines = l.lines, nil
	return out
}

// LaunchWithLog starts the operator. The returned function settles, and returns the lines of the operator's log that have these
// words, since it was called last.
func LaunchWithLog(s *Stage, words string, adjust ...func(*engine.Settings)) (take func() []string) {
	s.T.Helper()
	var log Log
	s.Process = s.Start(s.Operator, append(adjust, func(e *engine.Settings) { e.Log = log.logger(words, 0) })...)
	return func() []string {
		s.Settle()
		return log.Take()
	}
}

// WantLines fails the test unless the lines match these patterns, one each.
func (s *Stage) WantLines(log func() []string, want ...string) {
	s.T.Helper()
	got := log()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !regexp.MustCompile(want[i]).MatchString(got[i]) {
			s.T.Errorf("the log says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			return
		}
	}
}

// EventsAbout returns the Events of objects of a name whose reasons begin so.
func EventsAbout(all []kit.Event, name, reason string) (out []kit.Event) {
	for _, e := range all {
		if e.Name == name && strings.HasPrefix(e.Reason, reason) {
			out = append(out, e)
		}
	}
	return out
}

// LoopEvents returns the Events by which the breaker says that it stops an object.
func (s *Stage) LoopEvents() (out []kit.Event) {
	s.T.Helper()
	for _, e := range s.Events() {
		if e.Reason == "Looping" {
			out = append(out, e)
		}
	}
	return out
}

// WantWarning fails the test unless there is a warning about a handler.
func (s *Stage) WantWarning(handler string) {
	s.T.Helper()
	for _, e := range s.Events() {
		if e.Type == "Warning" && e.Action == handler {
			return
		}
	}
	s.T.Errorf("no Event warns of handler %s: %v", handler, s.Events())
}

// WantNoWarning fails the test if any Event is a warning.
func (s *Stage) WantNoWarning() {
	s.T.Helper()
	for _, e := range s.Events() {
		if e.Type == "Warning" {
			s.T.Errorf("an Event warns: %v", e)
		}
	}
}

// Texts are all that people can read of an operator: its log with all details, Events, health, annotations and status.
type Texts struct{ log Log }

// Launch starts the operator.
func (x *Texts) Launch(s *Stage, adjust ...func(*engine.Settings)) {
	s.T.Helper()
	s.Process = s.Start(s.Operator, append(adjust, func(e *engine.Settings) { e.Log = x.log.logger("", 9) })...)
}

// All returns the texts, with those on the objects of some resources.
func (x *Texts) All(s *Stage, resources ...string) string {
	s.T.Helper()
	texts := append(x.log.Lines(), fmt.Sprint(s.Events()), fmt.Sprint(s.Process.Engine().Ready()))
	for _, resource := range resources {
		for _, o := range s.List(resource, "") {
			texts = append(texts, fmt.Sprint(o.GetAnnotations(), o.Object["status"]))
		}
	}
	return strings.Join(texts, "\n")
}

// WantNoSecret fails the test if the texts have a value of PlainSecret, or lack these words.
func (x *Texts) WantNoSecret(s *Stage, words string, resources ...string) {
	s.T.Helper()
	text := x.All(s, resources...)
	for _, value := range []string{"hush", "aHVzaC"} { // and as the Secret has it
		if i := strings.Index(text, value); i >= 0 {
			s.T.Errorf("a value of the Secret is shown: …%s…", text[max(0, i-200):min(len(text), i+60)])
		}
	}
	if !strings.Contains(text, words) {
		s.T.Errorf("nothing says %q:\n%s", words, text)
	}
}
