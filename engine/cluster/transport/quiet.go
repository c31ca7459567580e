// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// quiet is the sink of such a logger. Client-go logs an error if a request is cancelled while its response is being read.
type quiet struct {
	logr.LogSink
	logged Logged
}

// Logged knows the errors that the log reports once for all requests, as the outage of a server.
type Logged interface {
	Logged(error) bool
}

// Quiet returns a logger for client-go. It logs errors of cancelled requests, and errors that the log reports once for all requests,
// at level 1 and not as errors. It never logs the bodies of requests and responses.
func Quiet(log logr.Logger, logged Logged) logr.Logger {
	if sink := log.GetSink(); sink != nil {
		return log.WithSink(quiet{sink, logged})
	}
	return log
}

// Enabled disables the levels at which client-go logs the bodies of requests and responses, because they may have Secrets.
func (q quiet) Enabled(level int) bool { return level < 8 && q.LogSink.Enabled(level) }

// Error logs an error. It logs cancellations, errors that are logged already, and Events that come too late for their namespace
// at level 1. It logs the names of Events, not their content.
func (q quiet) Error(err error, message string, values ...any) {
	values = named(values)
	late := apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
	switch {
	case !errors.Is(err, context.Canceled) && !givenUp(err) && !late && !q.logged.Logged(err):
		q.LogSink.Error(err, message, values...)
	case q.Enabled(1):
		q.Info(1, message, append(values, "reason", err.Error())...)
	}
}

// givenUp reports whether a request timed out. The HTTP client replaces the transport's error by one of its own: a *url.Error
// before the response, and one without an exported type while the body is read.
func givenUp(err error) bool {
	request, is := errors.AsType[net.Error](err)
	return is && request.Timeout()
}

// named returns the values with Events replaced by their names.
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

func (q quiet) WithValues(values ...any) logr.LogSink {
	return quiet{q.LogSink.WithValues(values...), q.logged}
}

func (q quiet) WithName(name string) logr.LogSink { return quiet{q.LogSink.WithName(name), q.logged} }
