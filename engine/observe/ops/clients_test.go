// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
)

// pipes is a listener whose clients are in the same process.
type pipes struct {
	ends   chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case end := <-p.ends:
		return end, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// from is a connection that comes from an address.
type from struct {
	net.Conn
	address net.Addr
}

func (f from) RemoteAddr() net.Addr { return f.address }

// dial connects a client with that address.
func (p *pipes) dial(address byte) net.Conn {
	client, server := net.Pipe()
	p.ends <- from{server, &net.TCPAddr{IP: net.IPv4(10, 0, 0, address), Port: 1}}
	return client
}

// scene is an endpoint that answers "ok".
func scene(t *testing.T, play func(t *testing.T, p *pipes)) {
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint("flag", "", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }), writeTime, logr.Discard())
		p := &pipes{make(chan net.Conn), make(chan struct{})}
		done := make(chan error, 1)
		go func() { done <- e.server.Serve(p) }()
		play(t, p)
		if err := e.server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

// open reports whether the server keeps a connection.
func open(conn net.Conn) bool {
	_ = conn.SetReadDeadline(time.Now().Add(time.Nanosecond))
	_, err := conn.Read(make([]byte, 1))
	return err != io.EOF //nolint:errorlint // a pipe returns it as it is
}

// TestRequestsThatNeverEndAreClosed holds that a client which sends a part of its request, or nothing, or does not read its
// answer, loses its connection.
func TestRequestsThatNeverEndAreClosed(t *testing.T) {
	tests := map[string]struct {
		sends string
		after time.Duration
	}{
		"it sends nothing":            {"", readTime},
		"its headers do not end":      {"GET /healthz HTTP/1.1\r\nHost: a\r\nX: ", readTime},
		"its body does not come":      {"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n", readTime},
		"it sends no further request": {"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", idleTime},
		"its headers are too large":   {"GET /healthz HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 2*mostHeader), 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene(t, func(t *testing.T, p *pipes) {
				conn := p.dial(1)
				go func() { _, _ = io.WriteString(conn, tt.sends) }()
				ended := make(chan time.Duration, 1)
				begun := time.Now()
				go func() {
					_, _ = io.Copy(io.Discard, conn)
					ended <- time.Since(begun)
				}()
				if after := <-ended; after > tt.after+time.Second {
					t.Errorf("the connection was closed after %v, want %v", after, tt.after)
				}
				_ = conn.Close()
			})
		})
	}
}

// TestAClientCannotKeepOthersOut holds that one address has a share of the connections, and that those it gives up count no more.
func TestAClientCannotKeepOthersOut(t *testing.T) {
	scene(t, func(t *testing.T, p *pipes) {
		asks := func(address byte) bool {
			conn := p.dial(address)
			defer func() { _ = conn.Close() }()
			go func() { _, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") }()
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				return false
			}
			defer response.Body.Close()
			return response.StatusCode == http.StatusOK
		}
		var held []net.Conn
		for range 2 * mostConnections {
			held = append(held, p.dial(1))
		}
		synctest.Wait()
		kept := 0
		for _, conn := range held {
			if open(conn) {
				kept++
			}
		}
		if kept != mostOfClient {
			t.Errorf("%d connections of one address are kept, want %d", kept, mostOfClient)
		}
		if asks(1) || !asks(2) {
			t.Error("want another address to be answered, and this one not")
		}
		for _, conn := range held {
			_ = conn.Close()
		}
		synctest.Wait()
		if !asks(1) {
			t.Error("an address whose connections are closed is not answered")
		}
	})
}
