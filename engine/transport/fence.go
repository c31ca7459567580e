// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
)

// ErrNotLeading is wrapped by the errors of writes by a process that does not lead, or does not any more.
var ErrNotLeading = errors.New("this process does not lead")

// Held reports whether the process leads. While that is in doubt it waits, until ctx ends.
type Held func(ctx context.Context) bool

// fencedTransport is the last thing before the wire, so that a process which was stopped and woke up finds it
// closed.
type fencedTransport struct {
	next     http.RoundTripper
	held     Held
	reviews  []string
	conflict func(context.Context)
}

// NewFence returns what puts a fence before the transport of requests that are made with this config: writes pass
// while held says so, and fail with [ErrNotLeading] otherwise. Conflict is called before the writer gets the answer that
// somebody else has written the object: that may have been another leader, of which this process does not know yet.
func NewFence(config *rest.Config, held Held, conflict func(context.Context)) (func(http.RoundTripper) http.RoundTripper, error) {
	reviews, err := reviewPaths(config)
	if err != nil {
		return nil, err
	}
	return func(next http.RoundTripper) http.RoundTripper {
		return &fencedTransport{next: next, held: held, reviews: reviews, conflict: conflict}
	}, nil
}

// RoundTrip refuses writes when leadership is lost.
func (t *fencedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if !t.writes(request) {
		return t.next.RoundTrip(request)
	}
	if !t.held(request.Context()) {
		return nil, fmt.Errorf("sending %s %s: %w", request.Method, request.URL.Path, ErrNotLeading)
	}
	response, err := t.next.RoundTrip(guarded(request, t.held))
	if err == nil && response.StatusCode == http.StatusConflict && overtaken(request) {
		t.conflict(request.Context())
	}
	return response, err
}

// overtaken reports whether a conflict says that somebody has written the object since the writer read it. That to a POST
// says that the name is taken, that to an apply that there is an object, or that fields are another manager's, and that to a deletion that another object
// has the name: none of them is about who leads.
func overtaken(request *http.Request) bool {
	switch request.Method {
	case http.MethodPut:
		return true
	case http.MethodPatch:
		return !strings.HasPrefix(request.Header.Get("Content-Type"), "application/apply-patch")
	}
	return false
}

// WrappedRoundTripper lets client-go find the connections underneath.
func (t *fencedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// writes reports whether the request changes something. Reviews, of access and of who asks, are posted, but
// they are questions: a process that stands by asks them too.
func (t *fencedTransport) writes(request *http.Request) bool {
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return !slices.Contains(t.reviews, request.URL.Path)
}

// reviewPaths are the paths of reviews as this config's requests have them. The server's URL may have a path
// of its own, before that of the API, as behind Rancher or kubectl proxy --api-prefix. It is the whole path
// that is compared, so no other resource can pass for one.
func reviewPaths(config *rest.Config) ([]string, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	return []string{
		path.Join("/", base.Path, "apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
		path.Join("/", base.Path, "apis/authentication.k8s.io/v1/selfsubjectreviews"),
	}, nil
}

// guarded returns the request with a body that asks the fence once more when it is sent. Between the
// fence and the wire a request may wait for a connection, or its goroutine for its turn, and the
// process may be stopped meanwhile. The API server does nothing with half a body.
func guarded(request *http.Request, held Held) *http.Request {
	if request.Body == nil || request.Body == http.NoBody {
		return request
	}
	guard := func(body io.ReadCloser) io.ReadCloser {
		return &guardedBody{ReadCloser: body, held: func() bool { return held(request.Context()) }}
	}
	out := request.WithContext(request.Context()) // a copy: the request is its sender's
	out.Body = guard(request.Body)
	if again := request.GetBody; again != nil { // for a connection that broke before it was used
		out.GetBody = func() (io.ReadCloser, error) {
			body, err := again()
			if err != nil {
				return nil, err
			}
			return guard(body), nil
		}
	}
	return out
}

type guardedBody struct {
	io.ReadCloser
	held func() bool
}

func (b *guardedBody) Read(into []byte) (int, error) {
	if !b.held() {
		return 0, ErrNotLeading
	}
	return b.ReadCloser.Read(into)
}
