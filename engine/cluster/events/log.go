// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"fmt"
	"strings"

	"github.com/go-logr/logr"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// loggedReason is the reason of an Event that repeats a line of the log.
const loggedReason = "Logged"

// Logging returns a log that also sends its lines as Events until the attempt is over: errors and lines marked as warnings as warnings,
// and other lines of level 0 as normal Events. Values of a line stand behind its text.
func (r *Reporter) Logging(log logr.Logger) logr.Logger {
	if log.GetSink() == nil {
		return log
	}
	return log.WithSink(&sender{LogSink: log.GetSink(), to: r})
}

// sender is a log sink whose lines are Events, too.
type sender struct {
	logr.LogSink
	to *Reporter
}

// Info logs a line, and sends it if its level is 0.
func (s *sender) Info(level int, line string, values ...any) {
	s.LogSink.Info(level, line, values...)
	if level > 0 {
		return
	}
	kind, rest := dsl.Normal, []any{}
	for i := 0; i+1 < len(values); i += 2 {
		if values[i] == logmark.Warning {
			kind = dsl.Warning
			continue
		}
		rest = append(rest, values[i], values[i+1])
	}
	s.send(kind, line, rest)
}

// Error logs an error, and sends it.
func (s *sender) Error(err error, line string, values ...any) {
	s.LogSink.Error(err, line, values...)
	if err != nil {
		line += ": " + err.Error()
	}
	s.send(dsl.Warning, line, values)
}

func (s *sender) send(kind dsl.EventType, line string, values []any) {
	var note strings.Builder
	note.WriteString(line)
	for i := 0; i+1 < len(values); i += 2 {
		fmt.Fprintf(&note, ", %v: %v", values[i], values[i+1])
	}
	if !s.to.attempt.Over() {
		s.to.recorder.Send(ops.ByHandler, s.to.object, s.to.handler, kind, loggedReason, note.String())
	}
}

// WithValues returns a sink that adds values to the lines of the log. Events are about an object, and do not repeat them.
func (s *sender) WithValues(values ...any) logr.LogSink {
	return &sender{LogSink: s.LogSink.WithValues(values...), to: s.to}
}

// WithName returns a sink with another name.
func (s *sender) WithName(name string) logr.LogSink {
	return &sender{LogSink: s.LogSink.WithName(name), to: s.to}
}

// WithCallDepth returns a sink that names a caller further up.
func (s *sender) WithCallDepth(depth int) logr.LogSink {
	inner := s.LogSink
	if deep, is := inner.(logr.CallDepthLogSink); is {
		inner = deep.WithCallDepth(depth)
	}
	return &sender{LogSink: inner, to: s.to}
}
