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

// requestDeadline is how long a request may take, from its first byte to the last one of its answer.
// The API server ends what takes it longer than 60 s (--request-timeout of kube-apiserver), so
// what takes longer than this was lost on the way.
const requestDeadline = 65 * time.Second

// noAnswerError is the error of a request whose time was over. What became of it on the server is
// unknown.
type noAnswerError struct{ within time.Duration }

// Error says for how long an answer was waited for.
func (e *noAnswerError) Error() string {
	return fmt.Sprintf("no answer within %vs", e.within.Seconds())
}

// Timeout makes it a timeout for code that checks a [net.Error].
func (e *noAnswerError) Timeout() bool { return true }

// deadline ends requests whose answer does not come: the worker that waits for one, and the object
// that it works on, would wait as long as the network likes. The answer to a watch has no end, so only
// its begin has a deadline; whether it is alive after that is for its informer to see.
type deadline struct {
	next  http.RoundTripper
	limit time.Duration
}

// RoundTrip sends a request. Its time ends when the answer's body is closed, not when it begins: a
// body may stall as well.
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

// begin sends a request for a watch. Its time ends when the answer begins: the API server sends the
// header at once.
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

// asks reports whether a request asks for a stream without end: "watch", which a streamed list is too,
// or "follow" of a log.
func asks(request *http.Request, stream string) bool {
	yes, err := strconv.ParseBool(request.URL.Query().Get(stream))
	return request.Method == http.MethodGet && err == nil && yes
}

// overdue is the error of a request: the transport's own, unless the deadline was the reason for it.
func overdue(ctx context.Context, err error) error {
	if late, ok := errors.AsType[*noAnswerError](context.Cause(ctx)); ok {
		return late
	}
	return err
}

// limitedBody is an answer's body that ends with its request's context.
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

// WithDeadline returns a config like the given one, of whose requests each has a deadline of 65 s: the API server
// ends what takes it longer than 60. Watches, and logs that are followed, have one for their beginning alone.
func WithDeadline(given *rest.Config) *rest.Config {
	config := rest.CopyConfig(given)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &deadline{next: next, limit: requestDeadline}
	})
	return config
}
