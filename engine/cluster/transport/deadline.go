// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
)

// requestDeadline is the greatest time of a request, from its first byte to the last one of the response. The API server ends
// requests after 60 s (--request-timeout of kube-apiserver), so a response that takes longer was lost on the way.
const requestDeadline = 65 * time.Second

// noAnswerError is the error of a request without a response before its deadline. The server may have handled it.
type noAnswerError struct{ within time.Duration }

// Error has the time that the request has waited.
func (e *noAnswerError) Error() string {
	return fmt.Sprintf("no answer within %vs", e.within.Seconds())
}

// Timeout makes it a timeout for code that checks a [net.Error].
func (e *noAnswerError) Timeout() bool { return true }

// deadline ends requests without a response. Otherwise their workers and objects would wait until the network gives up. The
// response to a watch has no end, so the deadline is for its begin alone. Its informer watches whether it is alive after that.
type deadline struct {
	next  http.RoundTripper
	limit time.Duration
}

// RoundTrip sends a request. The deadline also holds for the body of the response, because a body may stall.
func (d *deadline) RoundTrip(request *http.Request) (*http.Response, error) {
	switch {
	case asks(request, "follow"): // its answer begins with the first line of the log
		return d.next.RoundTrip(request)
	case asks(request, "watch"):
		return d.begin(request)
	}
	ctx, cancel := context.WithTimeoutCause(request.Context(), d.limit, &noAnswerError{d.limit})
	response, err := d.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		defer cancel()
		return nil, overdue(ctx, err)
	}
	response.Body = &limitedBody{ReadCloser: response.Body, ctx: ctx, cancel: cancel}
	return response, nil
}

// begin sends a request for a watch. The deadline holds until the response begins: the API server sends the header at once.
func (d *deadline) begin(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	late := time.AfterFunc(d.limit, func() { cancel(&noAnswerError{d.limit}) })
	response, err := d.next.RoundTrip(request.WithContext(ctx))
	late.Stop()
	if err != nil {
		defer cancel(nil)
		return nil, overdue(ctx, err)
	}
	response.Body = &limitedBody{ReadCloser: response.Body, ctx: ctx, cancel: func() { cancel(nil) }}
	return response, nil
}

// WrappedRoundTripper lets client-go find the connections underneath.
func (d *deadline) WrappedRoundTripper() http.RoundTripper { return d.next }

// asks reports whether a request asks for a stream without end: "watch", also for a streamed list, or "follow" of a log.
func asks(request *http.Request, stream string) bool {
	if request.Method != http.MethodGet || request.URL.RawQuery == "" {
		return false // most requests, so their query need not be parsed
	}
	yes, err := strconv.ParseBool(request.URL.Query().Get(stream))
	return err == nil && yes
}

// overdue is the error of a request: the transport's own, unless the deadline was the reason for it.
func overdue(ctx context.Context, err error) error {
	if late, ok := errors.AsType[*noAnswerError](context.Cause(ctx)); ok {
		return late
	}
	return err
}

// limitedBody is the body of a response. It ends with the request's context.
type limitedBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelFunc
}

// Read reads the body.
func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = overdue(b.ctx, err)
	}
	return n, err
}

// Close ends the request.
func (b *limitedBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// WithDeadline returns a copy of the config with a deadline of 65 s for each request: the API server ends requests after 60 s.
// For watches and followed logs, the deadline is for their begin alone.
func WithDeadline(given *rest.Config) *rest.Config {
	config := rest.CopyConfig(given)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &deadline{next: next, limit: requestDeadline}
	})
	return config
}
