// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// Proxy is between a client and the API server. It forwards everything at once and in order, and injects faults. It
// uses plain HTTP and needs no credentials.
type Proxy struct {
	url     string
	reverse *httputil.ReverseProxy

	mu         sync.Mutex
	requests   []*Request
	injections []*Injection
	holds      []*Hold
	exchanges  map[*Exchange]struct{}
	streams    map[*stream]struct{}
	severed    bool
	changed    signal // of any of these
}

// NewProxy starts a proxy that forwards with the credentials of config. It stops when the test ends.
func NewProxy(t testing.TB, config *rest.Config) *Proxy {
	t.Helper()
	upstream := rest.CopyConfig(config)
	upstream.DisableCompression = true // cut streams must end between two events
	target, _, err := rest.DefaultServerUrlFor(upstream)
	if err != nil {
		t.Fatalf("starting proxy: %v", err)
	}
	transport, err := rest.TransportFor(upstream)
	if err != nil {
		t.Fatalf("starting proxy: %v", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("starting proxy: %v", err)
	}
	p := &Proxy{
		url: "http://" + listener.Addr().String(), changed: newSignal(),
		exchanges: map[*Exchange]struct{}{}, streams: map[*stream]struct{}{},
	}
	p.reverse = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Del("Accept-Encoding")
		},
		Transport:      transport,
		FlushInterval:  -1,
		ModifyResponse: p.modify,
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:       log.New(io.Discard, "", 0),
	}
	p.serve(t, listener)
	return p
}

// Config returns a config for the proxy, without a client-side rate limit.
func (p *Proxy) Config() *rest.Config { return &rest.Config{Host: p.url, QPS: -1} }

// Injection is an active fault.
type Injection struct {
	proxy *Proxy
	when  When
	fault Fault
	count int
}

// Inject activates a fault. If several apply to one request, the one injected first is the outermost; each counts
// the request, even if an outer one does not forward it.
func (p *Proxy) Inject(when When, fault Fault) *Injection {
	i := &Injection{proxy: p, when: when, fault: fault}
	p.inject(i)
	return i
}

func (p *Proxy) inject(i *Injection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.injections = append(p.injections, i)
}

// Remove ends the fault for future requests.
func (i *Injection) Remove() {
	i.proxy.mu.Lock()
	defer i.proxy.mu.Unlock()
	i.proxy.injections = slices.DeleteFunc(i.proxy.injections, func(each *Injection) bool { return each == i })
}

// Sever disconnects the client, as if one side had died: open requests break, also those that the API server is
// handling, and new ones do not get through.
func (p *Proxy) Sever() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.severed = true
	for x := range p.exchanges {
		x.end()
	}
}

// Restore reverts Sever.
func (p *Proxy) Restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.severed = false
}

// Requests returns the matching requests in the order of their arrival, whatever happened to them.
func (p *Proxy) Requests(match Match) []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Request
	for _, r := range p.requests {
		if match(*r) {
			out = append(out, *r)
		}
	}
	return out
}

// Await waits until n matching requests have arrived, and returns those that have. To wait for responses, match by
// [Request.Code]; for streams, a code means that the stream has begun.
func (p *Proxy) Await(t testing.TB, n int, match Match) []Request {
	t.Helper()
	var found []Request
	p.await(t, "requests", func() bool {
		found = p.Requests(match)
		return len(found) >= n
	})
	return found
}

// await waits until met returns true. Met is called at each change, without the lock.
func (p *Proxy) await(t testing.TB, what string, met func() bool) {
	t.Helper()
	late := time.After(Patience)
	for {
		p.mu.Lock()
		changed := p.changed.wait()
		p.mu.Unlock()
		if met() {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("waiting for %s at the proxy: %v; of %d requests the last ones were:\n%+v", what, errLate, len(p.Requests(On("*", "*"))), p.latest())
		}
	}
}

func (p *Proxy) latest() []Request {
	all := p.Requests(On("*", "*"))
	return all[max(0, len(all)-10):]
}

// serve handles requests until the test ends, and returns after the last of them.
func (p *Proxy) serve(t testing.TB, listener net.Listener) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	server := &http.Server{
		Handler:     http.HandlerFunc(p.handle),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    log.New(io.Discard, "", 0),
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // ends by Shutdown alone
	}()
	t.Cleanup(func() {
		cancel()
		limit, done := bounded(t)
		defer done()
		if err := server.Shutdown(limit); err != nil {
			t.Errorf("stopping proxy: %v", err)
		}
		<-served
	})
}

type exchangeKey struct{}

// handle passes one request through the faults.
func (p *Proxy) handle(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	seen := newRequest(r)
	r.Body = &sentBody{ReadCloser: r.Body, torn: func() { p.torn(seen) }}
	x := &Exchange{Request: *seen, server: p.reverse, end: cancel}
	x.answered = func(code int) { p.answered(seen, code) }
	x.HTTP = r.WithContext(context.WithValue(ctx, exchangeKey{}, x))
	x.Answer = &observed{ResponseWriter: w, answered: x.answered}
	p.arrive(x, seen)
	defer p.leave(x)
	x.Forward()
}

// arrive logs a request and finds its faults.
func (p *Proxy) arrive(x *Exchange, r *Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, r)
	p.exchanges[x] = struct{}{}
	p.changed.raise()
	if p.severed {
		x.left = []Fault{Refuse}
		return
	}
	for _, i := range p.injections {
		if !i.when.Match(*r) {
			continue
		}
		i.count++
		if i.count > i.when.Skip && (i.when.Times == 0 || i.count <= i.when.Skip+i.when.Times) {
			x.left = append(x.left, i.fault)
		}
	}
}

func (p *Proxy) leave(x *Exchange) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.exchanges, x)
}

func (p *Proxy) answered(r *Request, code int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.Code = code
	p.changed.raise()
}

func (p *Proxy) torn(r *Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.Torn = true
	p.changed.raise()
}

// sentBody is a request's body from its sender.
type sentBody struct {
	io.ReadCloser
	torn func()
}

func (b *sentBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		b.torn()
	}
	return n, err
}

// observed records the status of a response.
type observed struct {
	http.ResponseWriter
	answered func(code int)
}

func (o *observed) WriteHeader(code int) {
	o.answered(code)
	o.ResponseWriter.WriteHeader(code)
}

// Unwrap makes the response flushable.
func (o *observed) Unwrap() http.ResponseWriter { return o.ResponseWriter }
