// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// sender sends a request for one object with less work than client-go: it joins the URL from strings, and reads the
// response into a buffer that is reused. It knows one result, an object. Everything else, such as an error, goes to
// client-go as the result of its first try, so that errors and retries are client-go's.
type sender struct {
	next          http.RoundTripper
	base          *url.URL
	accept, agent []string
	style         style
	// warns: somebody hears the warnings in responses, so client-go reads a response with a warning.
	warns bool
}

// newSender returns a sender for requests like those of a client; nil if client-go does more for them.
func newSender(config *rest.Config, client *http.Client, c *rest.RESTClient, as style) *sender {
	base := c.Get().AbsPath("/").URL()
	if c.GetRateLimiter() != nil || client.Timeout != 0 || client.Transport == nil || client.Jar != nil || base.User != nil {
		return nil
	}
	base.Path = strings.TrimSuffix(base.Path, "/")
	s := &sender{next: client.Transport, base: base, accept: []string{runtime.ContentTypeJSON}, style: as, warns: handlesWarnings(config)}
	if config.UserAgent != "" {
		s.agent = []string{config.UserAgent}
	}
	return s
}

// handlesWarnings reports whether clients of the config pass warnings of the server to a handler. If the config has no handler,
// client-go's default handler gets them.
func handlesWarnings(config *rest.Config) bool {
	var handler any = config.WarningHandlerWithContext
	if config.WarningHandlerWithContext == nil {
		handler = config.WarningHandler
	}
	_, deaf := handler.(rest.NoWarnings)
	return !deaf
}

// call is a request for one object.
type call struct{ method, path, query, contentType string }

// object sends a request and returns the object in the response. Without an object it returns the context for
// client-go to go on.
func (s *sender) object(ctx context.Context, c call, body []byte) (*unstructured.Unstructured, context.Context) {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, c.method, "/", reader)
	if err != nil {
		return nil, ctx
	}
	request.URL = &url.URL{Scheme: s.base.Scheme, Host: s.base.Host, Path: s.base.Path + c.path, RawQuery: c.query}
	request.Host = s.base.Host
	request.Header["Accept"] = s.accept
	if c.contentType != "" {
		request.Header["Content-Type"] = []string{c.contentType}
	}
	if s.agent != nil {
		request.Header["User-Agent"] = s.agent // otherwise the transport copies the request to add it
	}
	response, err := s.next.RoundTrip(request)
	if err == nil && hasObject(response) && (!s.warns || len(response.Header["Warning"]) == 0) {
		u := s.read(response)
		if u != nil {
			return u, ctx
		}
	}
	return nil, context.WithValue(ctx, firstKey{}, &first{response: response, err: err})
}

// hasObject reports whether a response should have an object in JSON.
func hasObject(r *http.Response) bool {
	kind := r.Header["Content-Type"]
	return (r.StatusCode == http.StatusOK || r.StatusCode == http.StatusCreated) && r.Body != nil && len(kind) == 1 && kind[0] == runtime.ContentTypeJSON
}

// answers are buffers for responses.
var answers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// read reads the object in a response. If it returns nil, the response can be read again.
func (s *sender) read(r *http.Response) *unstructured.Unstructured {
	buf := answers.Get().(*bytes.Buffer)
	buf.Reset()
	defer func() {
		if buf.Cap() <= spare {
			answers.Put(buf)
		}
	}()
	if r.ContentLength > 0 && r.ContentLength < spare {
		buf.Grow(int(r.ContentLength) + bytes.MinRead) // ReadFrom wants room beyond the end
	}
	_, err := buf.ReadFrom(r.Body)
	_ = r.Body.Close() // read to its end, or broken
	var u unstructured.Unstructured
	if err == nil && (objects{style: s.style}).decode(&u, buf.Bytes()) != nil {
		return &u
	}
	r.Body = &again{Reader: bytes.NewReader(bytes.Clone(buf.Bytes())), err: err}
	return nil
}

// again is a body that was read already, with the error that ended it.
type again struct {
	io.Reader
	err error
}

func (a *again) Read(into []byte) (int, error) {
	n, err := a.Reader.Read(into)
	if err != nil && a.err != nil {
		err = a.err
	}
	return n, err
}

func (a *again) Close() error { return nil }

// first is the result of the first try of a request.
type first struct {
	response *http.Response
	err      error
	taken    bool
}

// firstKey is the key of a first in a context.
type firstKey struct{}

// resumed is the transport with which client-go goes on: the first try of a request is over.
type resumed struct{ next http.RoundTripper }

// RoundTrip returns the result of the first try, or sends the request.
func (r resumed) RoundTrip(request *http.Request) (*http.Response, error) {
	f, is := request.Context().Value(firstKey{}).(*first)
	if !is || f.taken {
		return r.next.RoundTrip(request)
	}
	f.taken = true
	if request.Body != nil {
		_ = request.Body.Close() // a transport closes it
	}
	if f.response != nil {
		f.response.Request = request
	}
	return f.response, f.err
}

// WrappedRoundTripper lets client-go find the connections underneath.
func (r resumed) WrappedRoundTripper() http.RoundTripper { return r.next }
