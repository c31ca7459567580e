// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/go-logr/logr"
	eventsv1 "k8s.io/api/events/v1"
)

// quiet is a sink for what client-go logs: that something was asked to end, and did, is no error.
// Client-go logs a request that is cancelled while its answer is being read as one.
type quiet struct{ logr.LogSink }

// withQuiet returns a context whose logger, which client-go uses, is quiet.
func withQuiet(ctx context.Context, log logr.Logger) context.Context {
	return logr.NewContext(ctx, quietly(log))
}

// quietly returns a logger whose sink is quiet.
func quietly(log logr.Logger) logr.Logger {
	if sink := log.GetSink(); sink != nil {
		return log.WithSink(quiet{sink})
	}
	return log
}

// Enabled leaves out the bodies of requests and answers, which client-go logs from here on: they
// may be those of Secrets.
func (q quiet) Enabled(level int) bool { return level < 8 && q.LogSink.Enabled(level) }

// Error logs an error, but a cancellation and what nobody answered, which reach tells, as information
// for those who look closely. Events are named, not written out.
func (q quiet) Error(err error, message string, values ...any) {
	values = named(values)
	switch {
	case !errors.Is(err, context.Canceled) && !unanswered(err) && !givenUp(err) && !errors.Is(err, errNotLeading):
		q.LogSink.Error(err, message, values...)
	case q.Enabled(1):
		q.Info(1, message, append(values, "reason", err.Error())...)
	}
}

// givenUp reports whether a request was given up because its time was over. The HTTP client puts an error
// of its own in the place of the transport's: a *url.Error before there is an answer, one without an exported
// type while the body is read.
func givenUp(err error) bool {
	request, is := errors.AsType[net.Error](err)
	return is && request.Timeout()
}

// named returns the values with names in the place of Events.
func named(values []any) []any {
	out := slices.Clone(values)
	for i, value := range out {
		if event, is := value.(*eventsv1.Event); is && event != nil {
			about := event.Regarding
			out[i] = fmt.Sprintf("%s of %s %s/%s", event.Reason, about.Kind, about.Namespace, about.Name)
		}
	}
	return out
}

// WithValues keeps the new sink quiet.
func (q quiet) WithValues(values ...any) logr.LogSink { return quiet{q.LogSink.WithValues(values...)} }

// WithName keeps the new sink quiet.
func (q quiet) WithName(name string) logr.LogSink { return quiet{q.LogSink.WithName(name)} }
