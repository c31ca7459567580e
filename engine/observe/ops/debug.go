// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// DebugFlag is the flag for the address of /debug/.
	DebugFlag = "debug-bind-address"
	// DebugAddress is the default address of /debug/.
	DebugAddress = "127.0.0.1:8082"
	// DebugPath is the prefix of the paths of questions.
	DebugPath = "/debug/"
	// OperatorHeader names the operator in each answer of /debug/; see [DebugSettings]. With it and [ProcessHeader] a
	// client notices if another process answers at an address.
	OperatorHeader = "Handwerk-Operator"
	// ProcessHeader is the header with the process.
	ProcessHeader = "Handwerk-Process"
	// socketPrefix begins an address that is a Unix socket.
	socketPrefix = "unix:"
	// askTime is the timeout of a question.
	askTime = 30 * time.Second
)

// Debug answers questions about an operator at work. It changes nothing.
type Debug interface {
	// Ask answers a question, as "status", about what values say. The answer goes out as JSON. An error that is an
	// [apierrors.APIStatus] goes out with its code: 404 for an object that is not known, 400 for a bad question. Ask must
	// be safe for use by several goroutines.
	Ask(ctx context.Context, question string, values url.Values) (any, error)
}

// DebugSettings configure /debug/.
type DebugSettings struct {
	// Address serves /debug/. It is host:port, or unix:/path for a Unix socket that only the user of the process may open.
	// Whoever reaches a socket or a loopback address is on the machine, or in the Pod, already, or may forward a port to
	// it; any other address needs [Settings.Secure], and is for accounts that may get the nonResourceURL /debug/*. An empty
	// one or "0" turns it off.
	Address string
	// Elsewhere: if the port is taken, any free one serves. The log says which.
	Elsewhere bool
	// Debug answers. Required with Address.
	Debug Debug
	// Operator is the name of the operator, and Process the identity of its process.
	Operator, Process string
}

// newDebug returns the endpoint of /debug/. The gate is nil if nothing is protected.
func newDebug(s Settings, g *gate) *endpoint {
	d := s.Debug
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+DebugPath+"{question}", d.answer)
	address, socket := strings.CutPrefix(d.Address, socketPrefix)
	if socket {
		e := newEndpoint(DebugFlag, address, mux, writeTime, s.Log)
		e.network = "unix"
		return e
	}
	if onLoopback(address) {
		e := newEndpoint(DebugFlag, address, fromLoopback(mux), writeTime, s.Log)
		e.elsewhere = d.Elsewhere
		return e
	}
	if g == nil {
		e := newEndpoint(DebugFlag, address, mux, writeTime, s.Log)
		e.fault = errors.New("other machines may reach this address, so it needs --" + SecureFlag + "; without, serve on " + DebugAddress)
		return e
	}
	e := newEndpoint(DebugFlag, address, g.guard(mux), writeTime, s.Log)
	e.secure(s.Secure, s.Log)
	return e
}

// answer answers one question.
func (d *DebugSettings) answer(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), askTime)
	defer cancel()
	code := http.StatusOK
	answer, err := d.Debug.Ask(ctx, r.PathValue("question"), r.URL.Query())
	if err != nil {
		status := statusOf(err)
		answer, code = status, int(status.Code)
	}
	text, err := json.Marshal(answer)
	if err != nil {
		text, code = []byte("encoding the answer: "+err.Error()), http.StatusInternalServerError
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-cache, no-store")
	header.Set(OperatorHeader, d.Operator)
	header.Set(ProcessHeader, d.Process)
	w.WriteHeader(code)
	// An error here means that the client has closed the connection.
	_, _ = w.Write(append(text, '\n'))
}

// statusOf returns an error as the API server would.
func statusOf(err error) metav1.Status {
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		status = known.Status()
		status.Message = err.Error()
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return status
}

// fromLoopback rejects requests from web pages in a browser on this machine. It rejects other host names, because a
// page's name may resolve to a loopback address, and requests from pages of other sites, which must not even cause work.
func fromLoopback(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if byPage(r.Header) {
			answer(w, http.StatusForbidden, "pages of other sites get no answer\n")
			return
		}
		if name := (&url.URL{Host: r.Host}).Hostname(); !Loopback(name) {
			answer(w, http.StatusForbidden, fmt.Sprintf("this address is asked as localhost or 127.0.0.1, not as %q\n", name))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// byPage reports whether a page of another site causes a request. A person who types the address in a browser is no site.
func byPage(h http.Header) bool {
	site := h.Get("Sec-Fetch-Site")
	return h.Get("Origin") != "" || site != "" && site != "none" && site != "same-origin"
}

// onLoopback reports whether only this machine reaches an address.
func onLoopback(address string) bool {
	name, _, err := net.SplitHostPort(address)
	return err == nil && Loopback(name)
}

// Loopback reports whether a host is this machine.
func Loopback(name string) bool {
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}
