// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/sandbox/server/rbac"
	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// ErrRefused is the error of requests that do not reach the server.
var ErrRefused = errors.New("connection refused")

// Client is the connection of one process to the server, as an http.RoundTripper.
type Client struct {
	server *Server
	// before is called for each request for objects. An error keeps the request from the server: an API status is
	// the response, any other error is one of the connection.
	before func(Request) error
	// after is called for each response, with the status code, and may take time. An error loses the response.
	after func(context.Context, Request, int) error
	// trusted: it has all rights.
	trusted bool
	// user is its user, unless it is guarded: then each request says by a token whose it is.
	user    rbac.User
	guarded bool

	mu      sync.Mutex
	severed bool
	streams map[*stream]bool
}

// Client returns a new connection. The functions may be nil.
func (s *Server) Client(before func(Request) error, after func(context.Context, Request, int) error) *Client {
	if before == nil {
		before = func(Request) error { return nil }
	}
	if after == nil {
		after = func(context.Context, Request, int) error { return nil }
	}
	return &Client{server: s, before: before, after: after, streams: map[*stream]bool{}}
}

// Admin returns a connection with all rights.
func (s *Server) Admin() *Client {
	c := s.Client(nil, nil)
	c.trusted = true
	return c
}

// Through returns a new connection with the same rights whose requests go through these functions, as in [Server.Client].
func (c *Client) Through(before func(Request) error, after func(context.Context, Request, int) error) *Client {
	out := c.server.Client(before, after)
	out.trusted, out.user, out.guarded = c.trusted, c.user, c.guarded
	return out
}

// Sever ends the connection: requests do not reach the server until Restore, and watches end.
func (c *Client) Sever() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.severed = true
	for s := range c.streams {
		s.end()
		delete(c.streams, s)
	}
}

// Restore is the opposite of Sever.
func (c *Client) Restore() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.severed = false
}

// RoundTrip answers a request.
func (c *Client) RoundTrip(h *http.Request) (*http.Response, error) {
	out, err := c.respond(h)
	if err != nil {
		return out, err
	}
	out.Header.Set("Date", c.server.clock.Now().UTC().Format(http.TimeFormat))
	if out.Header.Get("Content-Type") != runtime.ContentTypeJSON {
		return out, nil
	}
	if _, endless := out.Body.(watching); endless {
		return out, nil
	}
	switch {
	case wantsYAML(h):
		return rewritten(out, runtime.ContentTypeYAML, yaml.JSONToYAML)
	case wantsIndented(h):
		return rewritten(out, runtime.ContentTypeJSON, indented)
	}
	return out, nil
}

// respond answers a request in JSON.
func (c *Client) respond(h *http.Request) (*http.Response, error) {
	if err := h.Context().Err(); err != nil {
		return nil, err
	}
	if c.isSevered() {
		return nil, ErrRefused
	}
	user, err := c.sender(h)
	if err != nil {
		return failure(h, err), nil
	}
	if out := c.discovered(h, user); out != nil {
		return out, nil
	}
	r, err := parse(h)
	if r.Resource.Resource == "" { // not the path of a resource
		err = cmp.Or(c.sees(h, user), err)
	}
	if err != nil {
		return failure(h, err), nil
	}
	r.trusted, r.user, r.reply = c.trusted, user, &reply{request: h}
	code, result, err := c.handle(h.Context(), &r)
	if err != nil {
		return nil, err
	}
	if err := c.after(h.Context(), r, code); err != nil {
		return nil, err
	}
	if s, ok := result.(*stream); ok {
		return c.streaming(h, s)
	}
	if c.isSevered() {
		return nil, ErrRefused
	}
	out := responseOf(h, code, result)
	if r.reply.protobuf {
		if out, err = inProtobuf(out); err != nil {
			return nil, err
		}
	}
	for _, warning := range r.reply.warnings {
		out.Header.Add("Warning", `299 - `+strconv.Quote(warning))
	}
	return out, nil
}

// responseOf returns the response with a result. A webhook may have to convert objects, without the server's lock.
func responseOf(h *http.Request, code int, result any) *http.Response {
	var err error
	switch result := result.(type) {
	case *listing:
		if result.rows, err = result.request.view.convertRows(h.Context(), result.rows); err != nil {
			return failure(h, err)
		}
		return respond(h, code, "application/json", result, -1)
	case shown:
		rows, err := result.request.view.convertRows(h.Context(), []*store.Row{result.row})
		if err != nil {
			return failure(h, err)
		}
		return whole(h, code, "application/json", appendRow(nil, result.table, result.request, rows[0]))
	case string:
		if result == "" {
			out := respond(h, http.StatusNoContent, "", http.NoBody, 0)
			out.Header.Del("Content-Type")
			return out
		}
		return answer(h, code, "text/plain", result)
	}
	return answer(h, code, "application/json", result)
}

// responder is a document that answers requests by itself.
type responder interface {
	response(h *http.Request) *http.Response
}

// discovered returns the response to a request for no objects, or nil for another one.
func (c *Client) discovered(h *http.Request, user rbac.User) *http.Response {
	kind, body, found, err := c.discover(h, user)
	if err != nil {
		return failure(h, err)
	}
	if document, is := body.(responder); is && found {
		return document.response(h)
	}
	if found {
		return answer(h, http.StatusOK, kind, body)
	}
	return nil
}

// discover answers a request for no objects, if its user may see the path.
func (c *Client) discover(h *http.Request, user rbac.User) (kind string, body any, found bool, err error) {
	kind, body, found, err = c.server.discover(h)
	if !found {
		return kind, body, found, err
	}
	return kind, body, found, cmp.Or(c.sees(h, user), err)
}

// sees returns why a user may not see a path that is not that of objects, or nil.
func (c *Client) sees(h *http.Request, user rbac.User) error {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	return c.server.permit(rbac.Attributes{User: user, Verb: strings.ToLower(h.Method), Path: h.URL.Path})
}

// handle numbers a request and passes it to the server, unless a fault prevents it.
func (c *Client) handle(ctx context.Context, r *Request) (code int, result any, err error) {
	result, err = nil, c.before(*r)
	r.Number = c.server.requests.Add(1)
	if err == nil {
		result, err = c.server.handle(ctx, *r)
	}
	status := apierrors.APIStatus(nil)
	switch {
	case err == nil && r.reply.code != 0:
		return r.reply.code, result, nil
	case err == nil && r.Verb == "create":
		return http.StatusCreated, result, nil
	case err == nil:
		return http.StatusOK, result, nil
	case errors.As(err, &status):
		s := statusOf(err)
		return int(s.Code), s, nil
	}
	return 0, nil, err
}

// streaming responds with a stream, unless the connection has ended since the request.
func (c *Client) streaming(h *http.Request, s *stream) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.severed {
		s.end()
		return nil, ErrRefused
	}
	c.streams[s] = true
	kind := runtime.ContentTypeJSON
	if s.request.shape.protobuf {
		kind = runtime.ContentTypeProtobuf + streamed
	}
	return respond(h, http.StatusOK, kind, watching{s, c}, -1), nil
}

// watching is a stream as the body of a response. When it is closed, nothing knows it any more.
type watching struct {
	*stream
	client *Client
}

// Close ends the stream.
func (w watching) Close() error {
	w.client.mu.Lock()
	delete(w.client.streams, w.stream)
	w.client.mu.Unlock()
	w.server.mu.Lock()
	delete(w.table.streams, w.stream)
	w.server.mu.Unlock()
	w.end()
	return nil
}

func (c *Client) isSevered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.severed
}

func answer(h *http.Request, code int, kind string, result any) *http.Response {
	data, err := plain.AppendJSON(nil, result)
	if err != nil {
		return failure(h, err)
	}
	if text, ok := result.(string); ok {
		data = []byte(text)
	}
	status, _ := result.(metav1.Status)
	if isPage(status) {
		kind, data = "text/plain; charset=utf-8", []byte("404 page not found\n")
	}
	out := whole(h, code, kind, data)
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		out.Header.Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	return out
}

// whole returns a response with a body that is complete.
func whole(h *http.Request, code int, kind string, data []byte) *http.Response {
	return respond(h, code, kind, io.NopCloser(bytes.NewReader(data)), int64(len(data)))
}

// respond returns a response. The length of the body is in bytes; -1 means that it is unknown.
func respond(h *http.Request, code int, kind string, body io.ReadCloser, length int64) *http.Response {
	return &http.Response{
		StatusCode: code, Status: strconv.Itoa(code) + " " + http.StatusText(code), Request: h,
		Header:        http.Header{"Content-Type": {kind}},
		ContentLength: length,
		Body:          body, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
}

func failure(h *http.Request, err error) *http.Response {
	s := statusOf(err)
	return answer(h, int(s.Code), "application/json", s)
}

// statusOf returns the error in its form on the wire.
func statusOf(err error) metav1.Status {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	s := known.Status()
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	if s.Code == 0 {
		s.Code = http.StatusInternalServerError
	}
	return s
}

// notServed returns the response for an unknown path: a page that is not found.
func notServed() metav1.Status {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, "", "404 page not found", 0, true).Status()
}

// isPage reports whether an error is plain text on the wire: client-go's clients convert it to an error with this
// cause.
func isPage(s metav1.Status) bool {
	return s.Code == http.StatusNotFound && s.Details != nil &&
		slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool { return c.Type == metav1.CauseTypeUnexpectedServerResponse })
}
