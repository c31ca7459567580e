// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package ops serves the metrics and the health of an operator over HTTP, for people and for the cluster.
//
// [Metrics] has a registry of its own, so two operators in one process do not mix. It uses common names where they exist
// (workqueue_*, rest_client_*, leader_election_master_status), so existing dashboards and alerts work. All other names begin
// with "handwerk_". The label "resource" is always a resource as its operator declares it, see [dsl.ResourceName].
//
// [Server] has /healthz and /readyz, as the Kubernetes API server has them, with ?verbose, ?exclude=CHECK and a path for each
// check. /metrics, /debug/ and the profiles have addresses of their own. A check that warns names a degraded part and does not
// make the whole unready; see [State]. [Debug] answers the questions of /debug/.
//
// [Trimmer] gives memory back to the system after a burst of work.
package ops

import (
	"context"
	"errors"
	"net/http"
	"net/http/pprof"
	"sync"

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
	// Debug serves /debug/.
	Debug DebugSettings
	// Health has the checks of /healthz and /readyz. Optional.
	Health HealthChecks
	// Metrics are the metrics of /metrics. Required with MetricsAddress.
	Metrics *Metrics
	// Secure protects MetricsAddress, which then serves /healthz and /readyz, too, and /debug/ where others than this machine
	// reach it. HealthAddress stays open for the kubelet.
	// It shows the messages of checks only to the Pod itself, because they name objects. Nil serves plain HTTP.
	Secure *Secure
	// Log gets the errors of single connections.
	Log logr.Logger
}

// HealthChecks has the checks of a process. The methods are called for each request. They must be quick and safe for use by
// several goroutines.
type HealthChecks interface {
	// Healthy returns the checks of /healthz.
	Healthy() []Check
	// Ready returns the checks of /readyz.
	Ready() []Check
}

// Server serves an operator's health, metrics, profiles and answers. Call its methods in this order: Listen, Serve, and Shutdown while
// Serve runs.
type Server struct {
	health, metrics, pprof, debug *endpoint
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
		out.debug = newDebug(s, nil)
		out.metrics = newEndpoint(MetricsFlag, s.MetricsAddress, numbers, writeTime, s.Log)
		return out
	}
	s.probes(numbers, false)
	g := newGate(s.Secure, s.Log)
	out.debug = newDebug(s, g)
	out.metrics = newEndpoint(MetricsFlag, s.MetricsAddress, g.guard(numbers), writeTime, s.Log)
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

// DebugAddress returns the address of /debug/ after Listen; empty if it is off. That of a Unix socket begins with unix:.
func (s *Server) DebugAddress() string { return s.debug.bound() }

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

func (s *Server) endpoints() []*endpoint { return []*endpoint{s.health, s.metrics, s.pprof, s.debug} }

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
