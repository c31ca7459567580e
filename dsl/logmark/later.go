// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package logmark

import "github.com/go-logr/logr"

// Later is log.WithValues with values that are computed for each line that is written, because most loggers never
// write one.
func Later(log logr.Logger, values func() []any) logr.Logger {
	if log.GetSink() == nil {
		return log
	}
	return log.WithSink(later{of: log.GetSink(), values: values})
}

type later struct {
	of     logr.LogSink
	values func() []any
	// depth is the number of helper frames between the caller and the sink.
	depth int
}

// Init does nothing, because the sink is initialized.
func (l later) Init(logr.RuntimeInfo) {}

// Enabled asks the sink.
func (l later) Enabled(level int) bool { return l.of.Enabled(level) }

// Info writes a line.
func (l later) Info(level int, message string, values ...any) {
	l.sink(1).Info(level, message, values...)
}

// Error writes the line of an error.
func (l later) Error(err error, message string, values ...any) {
	l.sink(1).Error(err, message, values...)
}

// WithValues computes the values now: its caller will probably log.
func (l later) WithValues(values ...any) logr.LogSink { return l.sink(0).WithValues(values...) }

// WithName computes the values now, too.
func (l later) WithName(name string) logr.LogSink { return l.sink(0).WithName(name) }

// WithCallDepth keeps the position of the caller.
func (l later) WithCallDepth(depth int) logr.LogSink {
	l.depth += depth
	return l
}

// sink returns the sink with the values; more is the number of additional frames of this file.
func (l later) sink(more int) logr.LogSink {
	out := l.of.WithValues(l.values()...)
	if deep, can := out.(logr.CallDepthLogSink); can && l.depth+more > 0 {
		out = deep.WithCallDepth(l.depth + more)
	}
	return out
}
