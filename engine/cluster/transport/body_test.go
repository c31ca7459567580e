// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// closes is the leadership of a process that leads until the value is true.
type closes atomic.Bool

func (c *closes) Sure(context.Context) bool { return !(*atomic.Bool)(c).Load() }

func (*closes) Conflict(context.Context) {}

// TestFenceIsAskedWhenTheConnectionIsThere loses leadership while a write waits for its connection.
func TestFenceIsAskedWhenTheConnectionIsThere(t *testing.T) {
	for name, lost := range map[string]bool{"leadership is lost meanwhile": true, "leadership is kept": false} {
		t.Run(name, func(t *testing.T) {
			var came atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if body, err := io.ReadAll(r.Body); err == nil && string(body) == "{}" {
					came.Add(1)
				}
			}))
			defer server.Close()
			var shut atomic.Bool
			wire := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				shut.Store(lost)
				return (&net.Dialer{}).DialContext(ctx, network, address)
			}}
			defer wire.CloseIdleConnections()
			f := (&Fence{leadership: (*closes)(&shut), reviews: []string{"/reviews"}}).Transport(wire)
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, server.URL, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			response, err := f.RoundTrip(request)
			if err == nil {
				_ = response.Body.Close()
			}
			if errors.Is(err, ErrNotLeading) != lost || !lost && err != nil {
				t.Errorf("the error is %v", err)
			}
			server.Close() // waits for requests that came
			if got := came.Load() == 1; got == lost {
				t.Errorf("the write came to the server: %v", got)
			}
		})
	}
}
