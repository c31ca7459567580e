// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"errors"
	"net/http"
	"net/http/pprof"
	"sync"

	"github.com/go-logr/logr"
)

// The flags that set a server's addresses. Errors name them, so a person knows what to change.
const (
	HealthFlag  = "health-probe-bind-address"
	MetricsFlag = "metrics-bind-address"
	PprofFlag   = "pprof-bind-address"
)

// Settings say what a [Server] serves and where. An address is host:port, as in ":8081" or
// "127.0.0.1:0"; an empty one or "0" turns its part off.
type Settings struct {
	// HealthAddress serves /healthz and /readyz.
	HealthAddress string
	// MetricsAddress serves /metrics.
	MetricsAddress string
	// PprofAddress serves /debug/pprof/, which tells much about the process: keep it local.
	PprofAddress string
	// Healthy and Ready are asked for the checks of /healthz and /readyz at each request. They
	// must be quick and may be called at the same time. Optional.
	Healthy, Ready func() []Check
	// Metrics is what /metrics shows. Required with MetricsAddress.
	Metrics *Metrics
	// Log is told what goes wrong with single connections.
	Log logr.Logger
}

// Server serves an operator's health, metrics and profiles. Its methods are called in this
// order: Listen, Serve, and Shutdown while Serve runs.
type Server struct {
	health, metrics, pprof *endpoint
}

// NewServer returns a server that does not listen yet.
func NewServer(s Settings) *Server {
	probes := http.NewServeMux()
	(&probe{name: "healthz", checks: s.Healthy}).register(probes)
	(&probe{name: "readyz", checks: s.Ready}).register(probes)
	numbers := http.NewServeMux()
	if s.Metrics != nil {
		numbers.Handle("GET /metrics", s.Metrics.Handler(s.Log))
	}
	return &Server{
		health:  newEndpoint(HealthFlag, s.HealthAddress, probes, s.Log),
		metrics: newEndpoint(MetricsFlag, s.MetricsAddress, numbers, s.Log),
		pprof:   newEndpoint(PprofFlag, s.PprofAddress, profiles(), s.Log),
	}
}

// Listen takes the addresses. On an error, which names the address and its flag, none is taken.
func (s *Server) Listen(ctx context.Context) error {
	for _, e := range s.endpoints() {
		if err := e.listen(ctx); err != nil {
			s.close()
			return err
		}
	}
	return nil
}

// HealthAddress is the address on which /healthz and /readyz are served after Listen, empty when
// they are off. With port 0 it holds the port that was found.
func (s *Server) HealthAddress() string { return s.health.bound() }

// MetricsAddress is the address on which /metrics is served after Listen, empty when it is off.
func (s *Server) MetricsAddress() string { return s.metrics.bound() }

// PprofAddress is the address on which profiles are served after Listen, empty when they are off.
func (s *Server) PprofAddress() string { return s.pprof.bound() }

// Serve answers requests until Shutdown is called; it returns nil then. When one address fails,
// all are given up and the error says why.
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

// Shutdown stops listening and waits for the requests that are under way. When ctx ends first
// they are cut off, and the error says so.
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

// profiles serves the runtime's profiles without the mux that is global to the process.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}
