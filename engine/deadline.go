// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

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

// Timeout tells those who ask a net.Error that this is one.
func (e *noAnswerError) Timeout() bool { return true }

// deadline ends requests whose answer does not come: the worker that waits for one, and the object
// that it works on, would wait as long as the network likes. Watches have no end and get no deadline;
// whether they are alive is for their informer to see.
type deadline struct {
	next  http.RoundTripper
	limit time.Duration
}

// RoundTrip sends a request. Its time ends when the answer's body is closed, not when it begins: a
// body may stall as well.
func (d *deadline) RoundTrip(request *http.Request) (*http.Response, error) {
	if streams(request) {
		return d.next.RoundTrip(request)
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

// WrappedRoundTripper lets client-go find the connections underneath.
func (d *deadline) WrappedRoundTripper() http.RoundTripper { return d.next }

// streams reports whether the answer is a stream without end: a watch, which a streamed list is
// too, or a log that is followed.
func streams(request *http.Request) bool {
	if request.Method != http.MethodGet {
		return false
	}
	query := request.URL.Query()
	for _, key := range []string{"watch", "follow"} {
		if yes, err := strconv.ParseBool(query.Get(key)); err == nil && yes {
			return true
		}
	}
	return false
}

// overdue is the error of a request: the transport's own, unless the deadline was the reason for it.
func overdue(ctx context.Context, err error) error {
	if late, ok := errors.AsType[*noAnswerError](context.Cause(ctx)); ok {
		return late
	}
	return err
}

// limitedBody is an answer's body that must be read before the deadline.
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

// withDeadline returns a config like the given one, of whose requests each has a deadline.
func withDeadline(given *rest.Config) *rest.Config {
	config := rest.CopyConfig(given)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &deadline{next: next, limit: requestDeadline}
	})
	return config
}
