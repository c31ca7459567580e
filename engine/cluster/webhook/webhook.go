// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package webhook answers the AdmissionReviews and ConversionReviews of the API server over TLS.
//
// The way of a request: [Server.ServeHTTP] finds the function of its path. It reads the body (body.go) and decodes the review
// (review.go, convert.go). The request waits for its turn, which is fair between namespaces (gate.go). The function runs in a goroutine
// of its own until shortly before the API server stops waiting (run.go).
//
// A response that denies a request comes from the function, or follows a panic in it. All other failures are HTTP errors with a
// metav1.Status, so the failurePolicy of the webhook decides whether the API server goes on without a response.
package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Review decides about a request to the API server. Its context ends shortly before the API server stops waiting. The server sets
// the response's UID, and the type of a patch without one. Review may be called from several goroutines.
type Review func(ctx context.Context, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse

// Convert returns an object in another version. It may change the object that it gets. Labels and annotations are the only metadata
// that may differ (https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#response).
// It may be called from several goroutines.
type Convert func(ctx context.Context, o *unstructured.Unstructured, toAPIVersion string) (*unstructured.Unstructured, error)

// Metrics count what a server answers. Results are the constants of this package.
type Metrics interface {
	// Reviewed notes an answered request to a known path.
	Reviewed(path, result string, took time.Duration)
	// Reviewing changes the number of requests to a known path that have no answer yet.
	Reviewing(path string, by int)
}

// Results of requests.
const (
	Allowed   = "allowed"   // the review allowed the request
	Denied    = "denied"    // the review denied the request
	Converted = "converted" // all objects were converted
	Failed    = "failed"    // an object could not be converted, or the function gave no response
	Panicked  = "panicked"  // the function panicked or called runtime.Goexit
	TimedOut  = "timeout"   // the function did not return in time
	Refused   = "refused"   // too many or too large requests waited
	Invalid   = "invalid"   // the request was no review
	Cut       = "cut"       // the API server, or the end of this process, did not wait for the answer
)

// The defaults of [Options].
const (
	DefaultAddress = ":9443"
	DefaultAtOnce  = 100
	DefaultWaiting = 200
	DefaultGrace   = 30 * time.Second
	// DefaultReviewBytes leaves room for a review's object and old object. Each has at most 3 MiB, the largest body that the API server
	// accepts (MaxRequestBodyBytes of NewConfig in k8s.io/apiserver/pkg/server).
	DefaultReviewBytes = 7 << 20
	// DefaultConversionBytes is larger, because the API server sends all objects of a list at once (Convert of webhookConverter in
	// k8s.io/apiextensions-apiserver/pkg/apiserver/conversion).
	DefaultConversionBytes = 64 << 20
)

const (
	// headerTime and bodyTime limit how long a client may take to send a request. API servers are near.
	headerTime = 10 * time.Second
	bodyTime   = 15 * time.Second
	// idleTime is longer than the 90 s after which API servers close idle connections (http.DefaultTransport, which client-go
	// copies). If this server closed them first, it could close one on which a request is on its way.
	idleTime = 3 * time.Minute
	// headerBytes is much more than API servers send.
	headerBytes = 32 << 10
)

// Options configure a server.
type Options struct {
	// Address is where the server listens. Defaults to [DefaultAddress].
	Address string
	// Certificate returns the certificate for a client that connects. Required.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Reviews and Conversions are the functions by path, as in "/validate". A path stands in one of them.
	Reviews     map[string]Review
	Conversions map[string]Convert

	// Listen opens the address. Defaults to that of [net.ListenConfig].
	Listen func(ctx context.Context, network, address string) (net.Listener, error)
	// AtOnce is how many functions run at once, for reviews and for conversions each. One namespace has at most three quarters of
	// them. Defaults to [DefaultAtOnce].
	AtOnce int
	// Waiting is how many requests wait for their turn, for reviews and for conversions each. If there are more, the server refuses
	// the newest one of the namespace that has the most, with 429 and Retry-After. It does the same if bodies have more than 32 MiB
	// together. Defaults to [DefaultWaiting].
	Waiting int
	// ReviewBytes and ConversionBytes limit bodies. They default to [DefaultReviewBytes] and [DefaultConversionBytes].
	ReviewBytes, ConversionBytes int64
	// Drain is how long the server goes on after the end of its context. Its answers close their connections then. API servers learn
	// with a delay that a Pod is no endpoint any more, and their calls fail meanwhile if nothing listens. Defaults to 0.
	Drain time.Duration
	// Grace is how long the server then waits for current requests. Defaults to [DefaultGrace].
	Grace time.Duration

	// Metrics are optional.
	Metrics Metrics
	Log     logr.Logger
}

// Server answers reviews. Its methods may be called from any goroutine, Serve once.
type Server struct {
	set    Options
	routes map[string]*route
	// closing: answers close their connections.
	closing atomic.Bool
	// running are the functions, also those whose requests have been answered without them.
	running sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener
}

// New checks the options. The server does not listen yet.
func New(set Options) (*Server, error) {
	set = set.withDefaults()
	s := &Server{set: set, routes: map[string]*route{}}
	reviews, conversions := newLane(set, set.ReviewBytes, reviewTime), newLane(set, set.ConversionBytes, conversionTime)
	for path, review := range set.Reviews {
		s.routes[path] = &route{path: path, lane: reviews, decode: review.decode, missing: review == nil}
	}
	for path, convert := range set.Conversions {
		if s.routes[path] != nil {
			return nil, fmt.Errorf("setting up webhooks: %s has a review and a conversion", path)
		}
		s.routes[path] = &route{path: path, lane: conversions, decode: convert.decode, missing: convert == nil}
	}
	for path, to := range s.routes {
		if to.missing || !strings.HasPrefix(path, "/") {
			return nil, fmt.Errorf("setting up webhooks: path %q must begin with / and have a function", path)
		}
	}
	if len(s.routes) == 0 || set.Certificate == nil {
		return nil, errors.New("setting up webhooks: a path and a certificate are required")
	}
	return s, nil
}

func (o Options) withDefaults() Options {
	if o.Address == "" {
		o.Address = DefaultAddress
	}
	if o.AtOnce <= 0 {
		o.AtOnce = DefaultAtOnce
	}
	if o.Waiting <= 0 {
		o.Waiting = DefaultWaiting
	}
	if o.ReviewBytes <= 0 {
		o.ReviewBytes = DefaultReviewBytes
	}
	if o.ConversionBytes <= 0 {
		o.ConversionBytes = DefaultConversionBytes
	}
	if o.Grace <= 0 {
		o.Grace = DefaultGrace
	}
	return o
}

// Listen opens the address, so that [Server.Address] is known before Serve. Without it, Serve listens.
func (s *Server) Listen(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		return nil
	}
	listen := (&net.ListenConfig{}).Listen
	if s.set.Listen != nil {
		listen = s.set.Listen
	}
	listener, err := listen(ctx, "tcp", s.set.Address)
	if err != nil {
		return fmt.Errorf("listening for webhooks at %s: %w", s.set.Address, err)
	}
	s.listener = listener
	return nil
}

// Address returns where the server listens, with the chosen port instead of port 0. It is empty before that.
func (s *Server) Address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return ""
	}
	return s.listener.Addr().String()
}

// Serve answers requests until ctx ends, and then returns nil. When ctx ends, it drains, stops listening, and waits for current
// requests. It cuts off those that take longer than the grace period, and logs that.
func (s *Server) Serve(ctx context.Context) error {
	if err := s.Listen(ctx); err != nil {
		return err
	}
	work, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	server, failed := s.http(work), make(chan error, 1)
	go func() { failed <- server.ServeTLS(s.listener, "", "") }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving webhooks: %w", err)
	case <-ctx.Done():
	}
	s.closing.Store(true)
	select {
	case err := <-failed:
		return fmt.Errorf("serving webhooks: %w", err)
	case <-time.After(s.set.Drain):
	}
	end, cancel := context.WithTimeout(work, s.set.Grace)
	defer cancel()
	if err := server.Shutdown(end); err != nil {
		s.set.Log.Info("requests were cut off", "after", s.set.Grace.String())
		cut(errCut)
		_ = server.Close() // the listener is closed already
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving webhooks: %w", err)
	}
	s.await(end, cut)
	return nil
}

// await waits for functions whose requests were answered without them. At the end of the grace period it leaves them behind.
func (s *Server) await(end context.Context, cut context.CancelCauseFunc) {
	cut(errCut)
	ended := make(chan struct{})
	go func() { defer close(ended); s.running.Wait() }()
	select {
	case <-ended:
	case <-end.Done():
	}
}

// http returns the server of this package's settings. Contexts of requests descend from work.
//
// HTTP/2 is off. API servers reach a webhook well by HTTP/1.1, with a connection for each request at a time, which a Service spreads
// over replicas. HTTP/2 would let a single client open streams faster than they are counted (CVE-2023-44487).
func (s *Server) http(work context.Context) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler:           s,
		Protocols:         protocols,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.set.Certificate, NextProtos: []string{"http/1.1"}},
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       bodyTime + longest, // else net/http waits without end for the body of a refused request
		WriteTimeout:      headerTime + bodyTime + longest,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    headerBytes,
		// Broken handshakes are for those who ask for detail: anybody in the cluster can cause them.
		ErrorLog:    slog.NewLogLogger(logr.ToSlogHandler(s.set.Log), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return work },
	}
}
