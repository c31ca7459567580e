// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package trace connects the engine to a tracing system: reconciles, handlers and requests to the API server are spans.
package trace

import (
	"context"
	"fmt"
	"net/http"
)

// Tracer begins and ends spans. Its methods may be called from any goroutine.
type Tracer interface {
	// Start begins a span below the span of the context, and returns a context with the new span. Attributes are names and values in turn.
	Start(ctx context.Context, name string, attributes ...string) context.Context
	// End ends the span of a context that Start returned. The error is the reason of a failure; nil for none.
	End(ctx context.Context, err error)
	// IDs returns the ids of the trace and the span of a context, as hexadecimal text. They are empty without a span.
	IDs(ctx context.Context) (trace, span string)
}

// Transport returns a transport whose requests are spans, if their context has a span. The requests carry it to the API server in the
// header traceparent (https://www.w3.org/TR/trace-context).
func Transport(t Tracer, next http.RoundTripper) http.RoundTripper { return &transport{t, next} }

type transport struct {
	tracer Tracer
	next   http.RoundTripper
}

// RoundTrip sends a request. An answer from 500 on counts as a failure.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if id, _ := t.tracer.IDs(r.Context()); id == "" {
		return t.next.RoundTrip(r) // a watch, for example
	}
	ctx := t.tracer.Start(r.Context(), r.Method, "http.request.method", r.Method, "url.path", r.URL.Path)
	id, span := t.tracer.IDs(ctx)
	r = r.Clone(ctx)
	r.Header.Set("Traceparent", "00-"+id+"-"+span+"-01")
	response, err := t.next.RoundTrip(r)
	failure := err
	if err == nil && response.StatusCode >= http.StatusInternalServerError {
		failure = fmt.Errorf("the API server answers %s", response.Status)
	}
	t.tracer.End(ctx, failure)
	return response, err
}
