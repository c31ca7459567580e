// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package logmark

import (
	"fmt"
	"maps"

	"github.com/go-logr/logr"
)

// Entry is a line of a log, with the values of its logger and its own.
type Entry struct {
	Message string
	// Level is the verbosity of information, and 0 for an error.
	Level int
	// Failed: the line is about an error. Its text is the value "error", if there is an error.
	Failed bool
	Values map[string]any
}

// Entries returns a logger that calls a function for each line, up to a level of verbosity. It ignores names. The
// function may keep and change the values.
func Entries(level int, take func(Entry)) logr.Logger {
	return logr.New(entries{level: level, take: take})
}

// entries is the sink of [Entries].
type entries struct {
	level  int
	take   func(Entry)
	values map[string]any
}

// Init does nothing.
func (e entries) Init(logr.RuntimeInfo) {}

// Enabled compares the level.
func (e entries) Enabled(level int) bool { return level <= e.level }

// WithName ignores the name.
func (e entries) WithName(string) logr.LogSink { return e }

// WithValues returns a sink whose lines have the values, too.
func (e entries) WithValues(values ...any) logr.LogSink {
	e.values = e.with(values)
	return e
}

// Info passes a line on.
func (e entries) Info(level int, message string, values ...any) {
	e.take(Entry{Message: message, Level: level, Values: e.with(values)})
}

// Error passes the line of an error on.
func (e entries) Error(err error, message string, values ...any) {
	all := e.with(values)
	if err != nil {
		all["error"] = err.Error()
	}
	e.take(Entry{Message: message, Failed: true, Values: all})
}

// with returns the sink's values and these pairs of keys and values.
func (e entries) with(pairs []any) map[string]any {
	out := map[string]any{}
	maps.Copy(out, e.values)
	for i := 0; i+1 < len(pairs); i += 2 {
		out[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return out
}
