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

// When says which requests a fault befalls.
type When struct {
	// Match chooses them. Required.
	Match Match
	// Skip lets so many go unharmed first.
	Skip int
	// Times is how many are befallen after that. Zero stands for all.
	Times int
}

// Fault does something to a request. Unless it forwards it, or writes an answer, the answer is an
// empty one.
type Fault func(x *Exchange)

// Exchange is one request on its way through a [Proxy].
type Exchange struct {
	Request
	// HTTP is the request itself. Its context ends when the client gives up.
	HTTP *http.Request
	// Answer takes the answer.
	Answer http.ResponseWriter

	left     []Fault
	server   http.Handler
	answered func(code int)
	end      func() // makes the API server's answer end
}

// Forward sends the request on, to the next fault or to the API server, and the answer back.
func (x *Exchange) Forward() {
	if len(x.left) > 0 {
		next := x.left[0]
		x.left = x.left[1:]
		next(x)
		return
	}
	x.server.ServeHTTP(x.Answer, x.HTTP)
}

// Break ends the client's connection without an answer. It does not return.
func (x *Exchange) Break() { panic(http.ErrAbortHandler) }

// lose forwards the request and throws the answer away.
func (x *Exchange) lose() {
	answer := x.Answer
	defer func() { x.Answer = answer }()
	x.Answer = &nowhere{header: http.Header{}, answered: x.answered}
	x.Forward()
}

// Wait waits for a channel to be closed. It breaks the exchange when the client gives up first.
func (x *Exchange) Wait(done <-chan struct{}) {
	select {
	case <-done:
	case <-x.HTTP.Context().Done():
		x.Break()
	}
}

// Answer answers without asking the API server, with any of apimachinery's errors: NewConflict,
// NewResourceExpired, NewTooManyRequests, NewInternalError, NewForbidden, NewNotFound.
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

// Page answers with the text "404 page not found", as the API server does for what it does not serve.
func Page(x *Exchange) { http.NotFound(x.Answer, x.HTTP) }

// Refuse breaks the connection before the API server gets the request.
func Refuse(x *Exchange) { x.Break() }

// LoseAnswer lets the API server handle the request, and breaks the connection instead of answering.
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

// Block keeps requests back until gate is closed.
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

// After calls hook when the API server has answered and the answer is on its way. The client may
// not see the end of it before hook returns.
func After(hook func(Request)) Fault {
	return func(x *Exchange) {
		x.Forward()
		hook(x.Request)
	}
}

// CrashBefore calls kill when the n-th write arrives, which never gets to the API server; nor does
// any request after it: the proxy is severed. It returns a channel that is closed after kill.
func (p *Proxy) CrashBefore(n int, kill func()) (crashed <-chan struct{}) {
	return p.crash(n, kill, func(*Exchange) {})
}

// CrashAfter calls kill when the API server has handled the n-th write, whose answer is lost; no
// request gets to the API server after it: the proxy is severed. It returns a channel that is
// closed after kill.
func (p *Proxy) CrashAfter(n int, kill func()) (crashed <-chan struct{}) {
	return p.crash(n, kill, (*Exchange).lose)
}

func (p *Proxy) crash(n int, kill func(), last func(*Exchange)) <-chan struct{} {
	crashed := make(chan struct{})
	var once sync.Once
	// All later writes are befallen too. Those that arrive while the n-th is under way wait for
	// its end, so that exactly n are handled.
	i := &Injection{proxy: p, when: When{Match: On("write", "*"), Skip: n - 1}}
	i.fault = func(x *Exchange) {
		once.Do(func() {
			defer close(crashed)
			defer kill()
			defer i.Remove() // for who comes after Restore
			defer p.Sever()
			last(x)
		})
		x.Break()
	}
	p.inject(i)
	return crashed
}

// nowhere takes an answer that nobody gets.
type nowhere struct {
	header   http.Header
	answered func(code int)
}

func (n *nowhere) Header() http.Header              { return n.header }
func (n *nowhere) Write(answer []byte) (int, error) { return len(answer), nil }
func (n *nowhere) WriteHeader(code int)             { n.answered(code) }
