// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package ops serves the metrics and the health of an operator over HTTP, for people and for the cluster.
//
// [Metrics] has a registry of its own, so two operators in one process do not mix. It uses common names where they exist
// (workqueue_*, rest_client_*, leader_election_master_status), so existing dashboards and alerts work. All other names begin
// with "handwerk_". The label "resource" is always a resource as its operator declares it, see [dsl.ResourceName].
//
// [Server] has /healthz and /readyz, as the Kubernetes API server has them, with ?verbose, ?exclude=CHECK and a path for each
// check. /metrics and the profiles have addresses of their own. A check that warns names a degraded part and does not make the
// whole unready; see [State].
//
// [Trimmer] gives memory back to the system after a burst of work.
package ops

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// The flags for a server's addresses. Errors name them.
const (
	HealthFlag  = "health-probe-bind-address"
	MetricsFlag = "metrics-bind-address"
	PprofFlag   = "pprof-bind-address"
)

// Settings configure a [Server]. An address is host:port, as in ":8081" or "127.0.0.1:0". An empty one or "0" turns its
// part off.
type Settings struct {
	// HealthAddress serves /healthz and /readyz.
	HealthAddress string
	// MetricsAddress serves /metrics.
	MetricsAddress string
	// PprofAddress serves /debug/pprof/, which exposes internals of the process: keep it local.
	PprofAddress string
	// Health has the checks of /healthz and /readyz. Optional.
	Health Health
	// Metrics are the metrics of /metrics. Required with MetricsAddress.
	Metrics *Metrics
	// Secure protects MetricsAddress, which then serves /healthz and /readyz, too. HealthAddress stays open for the kubelet.
	// It shows the messages of checks only to the Pod itself, because they name objects. Nil serves plain HTTP.
	Secure *Secure
	// Log gets the errors of single connections.
	Log logr.Logger
}

// Health has the checks of a process. The methods are called for each request. They must be quick and safe for use by
// several goroutines.
type Health interface {
	// Healthy returns the checks of /healthz.
	Healthy() []Check
	// Ready returns the checks of /readyz.
	Ready() []Check
}

// Server serves an operator's health, metrics and profiles. Call its methods in this order: Listen, Serve, and Shutdown while
// Serve runs.
type Server struct {
	health, metrics, pprof *endpoint
}

// NewServer returns a server that does not listen yet.
func NewServer(s Settings) *Server {
	probes := http.NewServeMux()
	s.probes(probes, s.Secure != nil)
	out := &Server{
		health: newEndpoint(HealthFlag, s.HealthAddress, probes, writeTime, s.Log),
		pprof:  newEndpoint(PprofFlag, s.PprofAddress, profiles(), 0, s.Log), // a profile takes as long as was asked for
	}
	numbers := http.NewServeMux()
	if s.Metrics != nil {
		numbers.Handle("GET /metrics", s.Metrics.Handler(s.Log))
	}
	if s.Secure == nil {
		out.metrics = newEndpoint(MetricsFlag, s.MetricsAddress, numbers, writeTime, s.Log)
		return out
	}
	s.probes(numbers, false)
	out.metrics = newEndpoint(MetricsFlag, s.MetricsAddress, newGate(s.Secure, s.Log).guard(numbers), writeTime, s.Log)
	out.metrics.secure(s.Secure, s.Log)
	return out
}

// probes adds the paths of /healthz and /readyz. Brief ones show the messages of checks only to the Pod itself.
func (s *Settings) probes(mux *http.ServeMux, brief bool) {
	(&probe{name: healthz, health: s.Health, brief: brief}).register(mux)
	(&probe{name: readyz, health: s.Health, brief: brief}).register(mux)
}

// Listen opens the addresses. If one fails, it closes all, and the error names the address and its flag.
func (s *Server) Listen(ctx context.Context) error {
	for _, e := range s.endpoints() {
		if err := e.listen(ctx); err != nil {
			s.close()
			return err
		}
	}
	return nil
}

// HealthAddress returns the address of /healthz and /readyz after Listen; empty if they are off. Instead of port 0 it has the
// chosen port.
func (s *Server) HealthAddress() string { return s.health.bound() }

// MetricsAddress returns the address of /metrics after Listen; empty if it is off.
func (s *Server) MetricsAddress() string { return s.metrics.bound() }

// PprofAddress returns the address of the profiles after Listen; empty if they are off.
func (s *Server) PprofAddress() string { return s.pprof.bound() }

// Serve answers requests until Shutdown, and then returns nil. If one address fails, it closes all and returns the error.
func (s *Server) Serve() error {
	endpoints := s.endpoints()
	failures := make([]error, len(endpoints))
	var wg sync.WaitGroup
	for i, e := range endpoints {
		wg.Go(func() {
			if failures[i] = e.serve(); failures[i] != nil {
				s.close()
			}
		})
	}
	wg.Wait()
	return errors.Join(failures...)
}

// Shutdown stops listening and waits for current requests. If ctx ends first, it cuts them off and returns an error.
func (s *Server) Shutdown(ctx context.Context) error {
	endpoints := s.endpoints()
	failures := make([]error, len(endpoints))
	var wg sync.WaitGroup
	for i, e := range endpoints {
		wg.Go(func() { failures[i] = e.shutdown(ctx) })
	}
	wg.Wait()
	return errors.Join(failures...)
}

func (s *Server) endpoints() []*endpoint { return []*endpoint{s.health, s.metrics, s.pprof} }

func (s *Server) close() {
	for _, e := range s.endpoints() {
		e.close()
	}
}

// profiles serves the runtime's profiles without the global mux.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// endpoint is one address of a server. Without an address, its methods do nothing.
type endpoint struct {
	flag, address string
	server        *http.Server
	listener      net.Listener
	// certs are the certificates; nil for plain HTTP.
	certs *certificates
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
	return &endpoint{flag: flag, address: address, server: &http.Server{
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
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", e.address)
	if err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok {
			err = op.Err
		}
		return fmt.Errorf("listening on %s (--%s): %w", e.address, e.flag, err)
	}
	e.listener = listener
	return nil
}

func (e *endpoint) bound() string {
	if e.listener == nil {
		return ""
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
