// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/go-logr/logr"
)

// quiet is a sink for what client-go logs: that something was asked to end, and did, is no error.
// Client-go logs a request that is cancelled while its answer is being read as one.
type quiet struct{ logr.LogSink }

// withQuiet returns a context whose logger, which client-go uses, is quiet.
func withQuiet(ctx context.Context, log logr.Logger) context.Context {
	if sink := log.GetSink(); sink != nil {
		log = log.WithSink(quiet{sink})
	}
	return logr.NewContext(ctx, log)
}

// Enabled leaves out the bodies of requests and answers, which client-go logs from here on: they
// may be those of Secrets.
func (q quiet) Enabled(level int) bool { return level < 8 && q.LogSink.Enabled(level) }

// Error logs an error, but a cancellation as information for those who look closely.
func (q quiet) Error(err error, message string, values ...any) {
	switch {
	case !errors.Is(err, context.Canceled):
		q.LogSink.Error(err, message, values...)
	case q.Enabled(1):
		q.Info(1, message, append(slices.Clip(values), "reason", err.Error())...)
	}
}

// WithValues keeps the new sink quiet.
func (q quiet) WithValues(values ...any) logr.LogSink { return quiet{q.LogSink.WithValues(values...)} }

// WithName keeps the new sink quiet.
func (q quiet) WithName(name string) logr.LogSink { return quiet{q.LogSink.WithName(name)} }
