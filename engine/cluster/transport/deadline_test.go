// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// mute is a server that sends the beginning of an answer, or nothing at all, and then no more.
type mute struct{ begins bool }

func (m mute) RoundTrip(request *http.Request) (*http.Response, error) {
	body := &silence{request.Context()}
	if m.begins {
		return &http.Response{StatusCode: http.StatusOK, Body: body, Request: request}, nil
	}
	_, err := body.Read(nil)
	return nil, err
}

// silence is a body that sends nothing.
type silence struct{ ctx context.Context }

func (s *silence) Read([]byte) (int, error) { <-s.ctx.Done(); return 0, s.ctx.Err() }
func (s *silence) Close() error             { return nil }

// TestDeadline holds which requests end by themselves, and how that reads.
func TestDeadline(t *testing.T) {
	tests := map[string]struct {
		method, url string
		server      mute
		endless     bool
	}{
		"a write without an answer":              {method: "PATCH", url: "/apis/example.com/v1/namespaces/default/foos/web"},
		"a write whose answer stalls":            {method: "POST", url: "/api/v1/events", server: mute{begins: true}},
		"a write that calls itself a watch":      {method: "DELETE", url: "/api/v1/pods?watch=true"},
		"a read":                                 {method: "GET", url: "/api/v1/pods/web", server: mute{begins: true}},
		"a list":                                 {method: "GET", url: "/api/v1/pods?watch=false&resourceVersion=0", server: mute{begins: true}},
		"discovery":                              {method: "GET", url: "/apis"},
		"an access review":                       {method: "POST", url: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"},
		"a watch has no end":                     {method: "GET", url: "/api/v1/pods?watch=true", server: mute{begins: true}, endless: true},
		"nor has one with a number for true":     {method: "GET", url: "/api/v1/pods?watch=1", server: mute{begins: true}, endless: true},
		"nor has a list that is streamed":        {method: "GET", url: "/api/v1/pods?sendInitialEvents=true&watch=true", server: mute{begins: true}, endless: true},
		"but each must begin":                    {method: "GET", url: "/api/v1/pods?sendInitialEvents=true&watch=true"},
		"nor has a log that is read as it grows": {method: "GET", url: "/api/v1/pods/web/log?follow=true", endless: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				request, err := http.NewRequestWithContext(ctx, test.method, "http://cluster"+test.url, nil)
				if err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				response, err := (&deadline{next: test.server, limit: requestDeadline}).RoundTrip(request)
				if err == nil {
					_, err = io.ReadAll(response.Body)
					_ = response.Body.Close()
				}
				took := time.Since(begun)
				switch {
				case test.endless && (took != time.Hour || !errors.Is(err, context.DeadlineExceeded)):
					t.Errorf("it ended after %v: %v", took, err)
				case !test.endless && (took != 65*time.Second || err == nil || err.Error() != "no answer within 65s"):
					t.Errorf("it ended after %v: %v", took, err)
				}
			})
		})
	}
}

// TestDeadlineLeavesTheCallersOwnAlone holds that a request which its caller gives up says so.
func TestDeadlineLeavesTheCallersOwnAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, "GET", "http://cluster/apis", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = (&deadline{next: mute{}, limit: requestDeadline}).RoundTrip(request)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// TestDeadlineOverTheNetwork holds the same for client-go's own connections: the error is the deadline's,
// and the next request finds its way.
func TestDeadlineOverTheNetwork(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/stalls":
					w.WriteHeader(http.StatusOK)
					_, _ = io.WriteString(w, "{")
					_ = http.NewResponseController(w).Flush()
					<-r.Context().Done()
					panic(http.ErrAbortHandler) // a handler that returns ends its answer in good order
				case "/mute":
					<-r.Context().Done()
					panic(http.ErrAbortHandler) // or there would be an answer, empty and in good order
				}
			}))
			server.EnableHTTP2 = http2
			server.StartTLS()
			defer server.Close()
			config := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTrip(func(r *http.Request) (*http.Response, error) {
					limit := 100 * time.Millisecond
					if r.URL.Path == "/" { // this one is answered, however long it takes here
						limit = time.Hour
					}
					return (&deadline{next: next, limit: limit}).RoundTrip(r)
				})
			})
			client, err := rest.HTTPClientFor(config)
			if err != nil {
				t.Fatal(err)
			}
			defer client.CloseIdleConnections()
			for _, path := range []string{"/mute", "/stalls"} {
				if _, err := get(t, client, server.URL+path); err == nil || !strings.HasSuffix(err.Error(), "no answer within 0.1s") {
					t.Errorf("%s ends with %v", path, err)
				}
			}
			// A stream outlives the deadline, and the connections that were used are in order.
			if proto, err := get(t, client, server.URL+"/?watch=true"); err != nil || (proto == 2) != http2 {
				t.Errorf("HTTP/%d, %v", proto, err)
			}
		})
	}
}

// get reads an answer to its end, and returns the major version of the protocol that it came by.
func get(t *testing.T, client *http.Client, url string) (proto int, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.ReadAll(response.Body)
	return response.ProtoMajor, err
}
