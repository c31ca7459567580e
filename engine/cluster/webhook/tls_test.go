// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
)

// started is a server that listens on this machine.
type started struct {
	*Server
	notes  *notes
	stop   context.CancelFunc
	end    chan error
	client *http.Client
}

// start starts a server with the certificate of httptest.
func start(t *testing.T, adjust ...func(*Options)) started {
	t.Helper()
	other := httptest.NewUnstartedServer(nil)
	other.StartTLS()
	t.Cleanup(other.Close)
	roots := x509.NewCertPool()
	roots.AddCert(other.Certificate())
	s, n := newServer(t, append([]func(*Options){func(o *Options) {
		o.Address = "127.0.0.1:0"
		o.Certificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &other.TLS.Certificates[0], nil }
	}}, adjust...)...)
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	out := started{s, n, stop, make(chan error, 1), &http.Client{Transport: &http.Transport{
		ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots},
	}}}
	go func() { out.end <- s.Serve(ctx) }()
	return out
}

func (s started) send(t *testing.T, path string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+s.Address()+path, strings.NewReader(review("shop", "web")))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	return s.client.Do(r)
}

func TestTheServerSpeaksTLS12AndHTTP1(t *testing.T) {
	s := start(t)
	response, err := s.send(t, "/allow")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK || response.ProtoMajor != 1 {
		t.Errorf("%d by %s", response.StatusCode, response.Proto)
	}
	old := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	if c, err := (&tls.Dialer{Config: old}).DialContext(t.Context(), "tcp", s.Address()); err == nil {
		_ = c.Close()
		t.Error("the server takes TLS 1.1")
	}
	s.stop()
	if err := <-s.end; err != nil {
		t.Error(err)
	}
	if _, err := s.send(t, "/allow"); err == nil {
		t.Error("the server answers after its end")
	}
}

// TestTheEndWaitsForRequests holds that a request which runs at the end gets its answer.
func TestTheEndWaitsForRequests(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	s := start(t, func(o *Options) {
		o.Reviews["/slow"] = func(ctx context.Context, _ *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			close(began)
			<-goOn
			return &admissionv1.AdmissionResponse{Allowed: ctx.Err() == nil}
		}
	})
	codes := make(chan int, 1)
	go func() {
		defer close(codes)
		response, err := s.send(t, "/slow?timeout=30s")
		if err != nil {
			t.Error(err)
			return
		}
		response.Body.Close()
		codes <- response.StatusCode
	}()
	<-began
	s.stop()
	for !s.closing.Load() {
		runtime.Gosched()
	}
	close(goOn)
	if code := <-codes; code != http.StatusOK {
		t.Errorf("the request that ran: %d", code)
	}
	if err := <-s.end; err != nil {
		t.Error(err)
	}
	if len(s.notes.lines) != 0 {
		t.Errorf("logged %v", s.notes.lines)
	}
}

// TestTheServerDrains holds that the server goes on after the end of its context, with answers that end their connections.
func TestTheServerDrains(t *testing.T) {
	s := start(t, func(o *Options) { o.Drain = time.Hour })
	s.stop()
	for closes := false; !closes; {
		response, err := s.send(t, "/allow")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		closes = response.Close
	}
	s.listener.Close()
	if err := <-s.end; err == nil || !strings.HasPrefix(err.Error(), "serving webhooks: ") {
		t.Errorf("Serve without a listener: %v", err)
	}
}

func TestTheEndCutsOffRequestsThatTakeTooLong(t *testing.T) {
	began, causes := make(chan struct{}), make(chan error, 1)
	s := start(t, func(o *Options) {
		o.Grace = 50 * time.Millisecond
		o.Reviews["/slow"] = func(ctx context.Context, _ *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			close(began)
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return nil
		}
	})
	go func() {
		if response, err := s.send(t, "/slow?timeout=30s"); err == nil {
			response.Body.Close()
		}
	}()
	<-began
	s.stop()
	if err := <-s.end; err != nil {
		t.Error(err)
	}
	if cause := <-causes; !errors.Is(cause, errCut) {
		t.Errorf("the review ended with %v", cause)
	}
	if lines := strings.Join(s.notes.lines, "\n"); !strings.Contains(lines, "requests were cut off") {
		t.Errorf("logged %s", lines)
	}
}

// pipes is a listener whose connections stay in the process, so that its clients can be in a bubble of synctest.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, is := <-p; is {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestAClientThatSendsNoBodyIsCutOff holds that nobody keeps a connection and a goroutine by a request whose body never comes.
func TestAClientThatSendsNoBodyIsCutOff(t *testing.T) {
	for name, path := range map[string]string{"of a review": "/allow", "of a refused request": "/other"} {
		t.Run(name, func(t *testing.T) {
			other := httptest.NewUnstartedServer(nil)
			other.StartTLS()
			t.Cleanup(other.Close)
			synctest.Test(t, func(t *testing.T) {
				listener := make(pipes)
				s, _ := newServer(t, func(o *Options) {
					o.Listen = func(context.Context, string, string) (net.Listener, error) { return listener, nil }
					o.Certificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &other.TLS.Certificates[0], nil }
				})
				ctx, stop := context.WithCancel(t.Context())
				end := make(chan error, 1)
				go func() { end <- s.Serve(ctx) }()
				here, there := net.Pipe()
				listener <- there
				authorities := x509.NewCertPool()
				authorities.AddCert(other.Certificate())
				client := tls.Client(here, &tls.Config{RootCAs: authorities, ServerName: "example.com"})
				if _, err := client.Write([]byte("POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n")); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				if _, err := io.ReadAll(client); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took > time.Minute {
					t.Errorf("the connection was cut off after %v", took)
				}
				_ = client.Close() // the other end is closed already
				stop()
				if err := <-end; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	review := func(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse { return nil }
	for name, set := range map[string]Options{
		"no path":                       {Certificate: noCertificate},
		"no certificate":                {Reviews: map[string]Review{"/a": review}},
		"a path without a slash":        {Certificate: noCertificate, Reviews: map[string]Review{"a": review}},
		"a path without a function":     {Certificate: noCertificate, Reviews: map[string]Review{"/a": nil}},
		"a path with two functions":     {Certificate: noCertificate, Reviews: map[string]Review{"/a": review}, Conversions: map[string]Convert{"/a": byName}},
		"a conversion without function": {Certificate: noCertificate, Conversions: map[string]Convert{"/a": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(set); err == nil || !strings.HasPrefix(err.Error(), "setting up webhooks: ") {
				t.Errorf("New: %v", err)
			}
		})
	}
}
