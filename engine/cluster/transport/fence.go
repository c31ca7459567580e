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

// ErrNotLeading is wrapped by the error of a write if the process is not the leader, or has ceased to be.
var ErrNotLeading = errors.New("this process does not lead")

// Held reports whether the process leads. While that is in doubt it waits, until ctx ends.
type Held func(ctx context.Context) bool

// Leadership knows whether this process leads, as [leader.Elector] does.
type Leadership interface {
	// Sure reports whether the process leads. While that is in doubt it waits, until ctx ends.
	Sure(ctx context.Context) bool
	// Conflict is called when a write has failed with a conflict, before the writer gets the error: another process may lead.
	Conflict(ctx context.Context)
}

// Fence keeps writes from the API server while the process does not lead.
type Fence struct {
	leadership Leadership
	reviews    []string
}

// NewFence returns a fence for the requests of clients with this config.
func NewFence(config *rest.Config, leadership Leadership) (*Fence, error) {
	reviews, err := reviewPaths(config)
	if err != nil {
		return nil, err
	}
	return &Fence{leadership: leadership, reviews: reviews}, nil
}

// Transport puts the fence before a transport: writes pass while the process leads, and fail with [ErrNotLeading] otherwise.
func (f *Fence) Transport(next http.RoundTripper) http.RoundTripper { return &fencedTransport{next, f} }

// fencedTransport is the last step before the network connection, so that the fence stops the writes of a process that was
// suspended and resumed.
type fencedTransport struct {
	next  http.RoundTripper
	fence *Fence
}

// RoundTrip refuses writes when leadership is lost.
func (t *fencedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if !t.writes(request) {
		return t.next.RoundTrip(request)
	}
	if !t.fence.leadership.Sure(request.Context()) {
		return nil, fmt.Errorf("sending %s %s: %w", request.Method, request.URL.Path, ErrNotLeading)
	}
	response, err := t.next.RoundTrip(t.fence.guarded(request))
	if err == nil && response.StatusCode == http.StatusConflict && overtaken(request) {
		t.fence.leadership.Conflict(request.Context())
	}
	return response, err
}

// overtaken reports whether a conflict means that somebody has written the object since the writer read it. Other conflicts say
// nothing about who leads: for a POST the name is taken, for an apply the object exists or its fields are another manager's, and
// for a deletion another object has the name.
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

// writes reports whether the request changes something. Reviews of access and of the own user are POSTs, but they are
// questions, which standbys ask, too.
func (t *fencedTransport) writes(request *http.Request) bool {
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return !slices.Contains(t.fence.reviews, request.URL.Path)
}

// reviewPaths returns the paths of reviews in requests with this config. The server's URL may have a path of its own before
// that of the API, as behind Rancher or kubectl proxy --api-prefix. The fence compares whole paths, so no other resource can
// look like a review.
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

// guarded returns the request with a body that asks the fence once more when it is sent. Between the fence and the network a
// request may wait for a connection, and the process may be suspended in that time. The API server ignores a request with half
// a body.
func (f *Fence) guarded(request *http.Request) *http.Request {
	if request.Body == nil || request.Body == http.NoBody {
		return request
	}
	guard := func(body io.ReadCloser) io.ReadCloser {
		return &guardedBody{ReadCloser: body, request: request, fence: f}
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
	request *http.Request
	fence   *Fence
}

func (b *guardedBody) Read(into []byte) (int, error) {
	if !b.fence.leadership.Sure(b.request.Context()) {
		return 0, ErrNotLeading
	}
	return b.ReadCloser.Read(into)
}
