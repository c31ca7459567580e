// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// When selects the requests that a fault applies to.
type When struct {
	// Match selects requests. Required.
	Match Match
	// Skip is how many of them pass unharmed first.
	Skip int
	// Times is how many are affected after that. Zero means all.
	Times int
}

// Fault acts on a request. Unless it forwards the request or writes a response, the response is empty.
type Fault func(x *Exchange)

// Exchange is one request on its way through a [Proxy].
type Exchange struct {
	Request
	// HTTP is the request itself. Its context ends when the client gives up.
	HTTP *http.Request
	// Answer receives the response.
	Answer http.ResponseWriter

	left     []Fault
	server   http.Handler
	answered func(code int)
	end      func() // ends the API server's response
}

// Forward passes the request on, to the next fault or to the API server, and the response back.
func (x *Exchange) Forward() {
	if len(x.left) > 0 {
		next := x.left[0]
		x.left = x.left[1:]
		next(x)
		return
	}
	x.server.ServeHTTP(x.Answer, x.HTTP)
}

// Break ends the client's connection without a response. It does not return.
func (x *Exchange) Break() { panic(http.ErrAbortHandler) }

// lose forwards the request and drops the response.
func (x *Exchange) lose() {
	answer := x.Answer
	defer func() { x.Answer = answer }()
	x.Answer = &nowhere{header: http.Header{}, answered: x.answered}
	x.Forward()
}

// Wait waits until a channel is closed. It breaks the exchange if the client gives up first.
func (x *Exchange) Wait(done <-chan struct{}) {
	select {
	case <-done:
	case <-x.HTTP.Context().Done():
		x.Break()
	}
}

// Answer responds without the API server, with an error of apimachinery: NewConflict, NewResourceExpired,
// NewTooManyRequests, NewInternalError, NewForbidden, NewNotFound.
func Answer(err *apierrors.StatusError) Fault {
	return func(x *Exchange) {
		status := err.Status()
		status.Kind, status.APIVersion = "Status", "v1"
		if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
			x.Answer.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
		}
		x.Answer.Header().Set("Content-Type", "application/json")
		x.Answer.WriteHeader(int(status.Code))
		_ = json.NewEncoder(x.Answer).Encode(status) // the client may be gone
	}
}

// Page responds with the text "404 page not found", as the API server does for paths that it does not serve.
func Page(x *Exchange) { http.NotFound(x.Answer, x.HTTP) }

// Refuse breaks the connection before the API server gets the request.
func Refuse(x *Exchange) { x.Break() }

// LoseAnswer lets the API server handle the request, and breaks the connection instead of responding.
func LoseAnswer(x *Exchange) {
	x.lose()
	x.Break()
}

// Delay forwards the request a while later.
func Delay(by time.Duration) Fault {
	return func(x *Exchange) {
		timer := time.NewTimer(by)
		defer timer.Stop()
		select {
		case <-timer.C:
			x.Forward()
		case <-x.HTTP.Context().Done():
			x.Break()
		}
	}
}

// Block holds requests until gate is closed.
func Block(gate <-chan struct{}) Fault {
	return func(x *Exchange) {
		x.Wait(gate)
		x.Forward()
	}
}

// Before calls hook before the API server gets the request.
func Before(hook func(Request)) Fault {
	return func(x *Exchange) {
		hook(x.Request)
		x.Forward()
	}
}

// After calls hook when the API server has responded. The client may not see the end of the response before hook
// returns.
func After(hook func(Request)) Fault {
	return func(x *Exchange) {
		x.Forward()
		hook(x.Request)
	}
}

// CrashBefore calls kill when the n-th write arrives. Neither that write nor any later request reaches the API
// server: the proxy is severed. It returns a channel that is closed after kill.
func (p *Proxy) CrashBefore(n int, kill func()) (crashed <-chan struct{}) {
	return p.crash(n, kill, func(*Exchange) {})
}

// CrashAfter calls kill when the API server has handled the n-th write. The response is lost, and no later request
// reaches the API server: the proxy is severed. It returns a channel that is closed after kill.
func (p *Proxy) CrashAfter(n int, kill func()) (crashed <-chan struct{}) {
	return p.crash(n, kill, (*Exchange).lose)
}

func (p *Proxy) crash(n int, kill func(), last func(*Exchange)) <-chan struct{} {
	crashed := make(chan struct{})
	var once sync.Once
	// All later writes are affected, too. Those that arrive during the n-th wait for its end, so that exactly n are
	// handled.
	i := &Injection{proxy: p, when: When{Match: On("write", "*"), Skip: n - 1}}
	i.fault = func(x *Exchange) {
		once.Do(func() {
			defer close(crashed)
			defer kill()
			defer i.Remove() // for requests after Restore
			defer p.Sever()
			last(x)
		})
		x.Break()
	}
	p.inject(i)
	return crashed
}

// nowhere receives a response and drops it.
type nowhere struct {
	header   http.Header
	answered func(code int)
}

func (n *nowhere) Header() http.Header              { return n.header }
func (n *nowhere) Write(answer []byte) (int, error) { return len(answer), nil }
func (n *nowhere) WriteHeader(code int)             { n.answered(code) }
