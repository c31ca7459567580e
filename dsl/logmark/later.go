// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package logmark

import "github.com/go-logr/logr"

// Later is log.WithValues with what values returns, worked out for each line that is written: most loggers that are handed out
// write none.
func Later(log logr.Logger, values func() []any) logr.Logger {
	if log.GetSink() == nil {
		return log
	}
	return log.WithSink(later{of: log.GetSink(), values: values})
}

type later struct {
	of     logr.LogSink
	values func() []any
	// depth is how many frames of helpers stand between who logs and the sink.
	depth int
}

// Init does nothing: the sink has been.
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

// WithValues is of who asks for it, so it has something to say.
func (l later) WithValues(values ...any) logr.LogSink { return l.sink(0).WithValues(values...) }

// WithName is WithValues for a name.
func (l later) WithName(name string) logr.LogSink { return l.sink(0).WithName(name) }

// WithCallDepth keeps the place that a line is from.
func (l later) WithCallDepth(depth int) logr.LogSink {
	l.depth += depth
	return l
}

// sink has the values; more is how many frames of this file come on top.
func (l later) sink(more int) logr.LogSink {
	out := l.of.WithValues(l.values()...)
	if deep, can := out.(logr.CallDepthLogSink); can && l.depth+more > 0 {
		out = deep.WithCallDepth(l.depth + more)
	}
	return out
}
