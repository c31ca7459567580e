// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/go-logr/logr"
)

// endpoint is one address of a server. Without an address, its methods do nothing.
type endpoint struct {
	flag, address string
	server        *http.Server
	listener      net.Listener
	// certs are the certificates; nil for plain HTTP.
	certs *certificates
	// network is the network of the address, as for net.Listen.
	network string
	// elsewhere: if the address is taken, another port serves.
	elsewhere bool
	// fault is why the address cannot be served; nil if it can.
	fault error
	log   logr.Logger
}

// The limits for one client of an endpoint. A request has no body, so readTime is for all of it. WriteTime is for the metrics of
// many resources over a slow connection. With mostHeader bytes of headers, all connections together take less than 10 MB.
const (
	readTime   = 10 * time.Second
	writeTime  = time.Minute
	idleTime   = 2 * time.Minute
	mostHeader = 8 << 10
)

// newEndpoint returns an endpoint that does not listen yet. Write is the greatest time for an answer; zero for no limit.
func newEndpoint(flag, address string, handler http.Handler, write time.Duration, log logr.Logger) *endpoint {
	return &endpoint{flag: flag, address: address, network: "tcp", log: log, server: &http.Server{
		Handler:        handler,
		ReadTimeout:    readTime,
		WriteTimeout:   write,
		IdleTimeout:    idleTime,
		MaxHeaderBytes: mostHeader,
		ConnState:      (&clients{}).connState,
		ErrorLog:       slog.NewLogLogger(logr.ToSlogHandler(log), slog.LevelInfo),
	}}
}

// secure makes the endpoint use TLS. HTTP/2 is off: metrics do not need it, and one connection of it can carry any number of
// requests.
func (e *endpoint) secure(s *Secure, log logr.Logger) {
	e.certs = &certificates{certFile: s.CertFile, keyFile: s.KeyFile, log: log}
	e.server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: e.certs.get}
	e.server.Protocols = new(http.Protocols)
	e.server.Protocols.SetHTTP1(true)
}

func (e *endpoint) listen(ctx context.Context) error {
	if e.address == "" || e.address == "0" {
		return nil
	}
	if e.certs != nil {
		if _, err := e.certs.get(nil); err != nil {
			return fmt.Errorf("serving on %s (--%s): %w", e.address, e.flag, err)
		}
	}
	listener, err := e.open(ctx)
	if err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok {
			err = op.Err
		}
		return fmt.Errorf("listening on %s (--%s): %w", e.address, e.flag, err)
	}
	e.listener = listener
	return nil
}

// open listens on the address, or elsewhere.
func (e *endpoint) open(ctx context.Context) (net.Listener, error) {
	switch {
	case e.fault != nil:
		return nil, e.fault
	case e.network == "unix":
		return listenSocket(ctx, e.address)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, e.network, e.address)
	if !e.elsewhere || !errors.Is(err, syscall.EADDRINUSE) {
		return listener, err
	}
	host, _, _ := net.SplitHostPort(e.address)
	if listener, err = (&net.ListenConfig{}).Listen(ctx, e.network, net.JoinHostPort(host, "0")); err == nil {
		e.log.Info("the default address is taken, so another one serves", "flag", "--"+e.flag, "taken", e.address, "address", listener.Addr().String())
	}
	return listener, err
}

func (e *endpoint) bound() string {
	switch {
	case e.listener == nil:
		return ""
	case e.network == "unix":
		return socketPrefix + e.address
	}
	return e.listener.Addr().String()
}

func (e *endpoint) serve() error {
	if e.listener == nil {
		return nil
	}
	serve := e.server.Serve
	if e.certs != nil {
		serve = func(l net.Listener) error { return e.server.ServeTLS(l, "", "") }
	}
	if err := serve(e.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving on %s (--%s): %w", e.bound(), e.flag, err)
	}
	return nil
}

func (e *endpoint) shutdown(ctx context.Context) error {
	if e.listener == nil {
		return nil
	}
	if err := e.server.Shutdown(ctx); err != nil {
		e.close()
		return fmt.Errorf("ending requests on %s (--%s): %w", e.bound(), e.flag, err)
	}
	return nil
}

// close closes everything at once. Its errors are about connections that are closed already.
func (e *endpoint) close() {
	if e.listener != nil {
		_ = e.server.Close()
		_ = e.listener.Close()
	}
}
