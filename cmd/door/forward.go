// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
)

// forward returns the process behind a port of a Pod.
func (s *search) forward(ctx context.Context, namespace, pod, port, operator string) (*Process, error) {
	where := fmt.Sprintf("port %s of Pod %s/%s", port, namespace, pod)
	to := s.client.Core().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	conn, err := s.connect(ctx, to)
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("forwarding %s: %w: it needs the rights to get and to create pods/portforward in namespace %s", where, err, namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("forwarding %s: %w", where, err)
	}
	var requests atomic.Int64
	dial := func(context.Context, string, string) (net.Conn, error) {
		return open(conn, port, strconv.FormatInt(requests.Add(1), 10))
	}
	p := newProcess(dial, where, operator)
	p.closes = func() { _ = conn.Close() }
	return p, nil
}

// connect connects to the Pod by WebSocket, and if the API server or a proxy does not do that, by SPDY.
func (s *search) connect(ctx context.Context, to *url.URL) (httpstream.Connection, error) {
	trip, upgrader, err := spdy.RoundTripperFor(s.config)
	if err != nil {
		return nil, err
	}
	second := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: trip}, http.MethodPost, to)
	first, err := portforward.NewSPDYOverWebsocketDialerForStreamingWithLogger(klog.FromContext(ctx), to, s.config)
	if err != nil {
		return nil, err
	}
	var refused error
	dialer := portforward.NewFallbackDialerForStreaming(first, second, func(err error) bool {
		if upgrade, ok := errors.AsType[*httpstream.UpgradeFailureError](err); ok {
			refused = upgrade.Cause
		}
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	type result struct {
		conn httpstream.Connection
		err  error
	}
	done := make(chan result)
	go func() {
		conn, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
		if _, says := errors.AsType[*apierrors.StatusError](refused); says && err != nil {
			err = refused // the API server has said why, and the second error has the text alone
		}
		select {
		case done <- result{conn, err}:
		case <-ctx.Done():
			if conn != nil {
				_ = conn.Close()
			}
		}
	}()
	select {
	case r := <-done:
		return r.conn, r.err
	case <-ctx.Done(): // dialers know no context
		return nil, ctx.Err()
	}
}

// open opens a connection to a port of the Pod: a pair of streams.
func open(conn httpstream.Connection, port, request string) (net.Conn, error) {
	header := http.Header{}
	header.Set(corev1.PortHeader, port)
	header.Set(corev1.PortForwardRequestIDHeader, request)
	header.Set(corev1.StreamType, corev1.StreamTypeError)
	fails, err := conn.CreateStream(header)
	if err != nil {
		return nil, err
	}
	_ = fails.Close() // nothing is written to it
	header.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := conn.CreateStream(header)
	if err != nil {
		conn.RemoveStreams(fails)
		return nil, err
	}
	s := &stream{Stream: data, failed: make(chan struct{}), end: func() { conn.RemoveStreams(fails, data) }}
	go func() {
		defer close(s.failed)
		text, err := io.ReadAll(fails)
		if said := strings.TrimSpace(string(text)); said != "" {
			s.failure = refusal(said)
		} else {
			s.failure = err
		}
	}()
	return s, nil
}

// stream is a connection to a port of a Pod.
type stream struct {
	httpstream.Stream
	// failed is closed when the error stream has ended; failure is what it said, nil if that was nothing.
	failed  chan struct{}
	failure error
	end     func()
}

// afterwards is how long the reason for the end of a connection may come after the end.
const afterwards = time.Second

// refusal is what the kubelet says of a port that it cannot forward.
type refusal string

// Error returns its words.
func (r refusal) Error() string { return string(r) }

// Read reads from the Pod. The reason why a connection has failed comes in place of its end.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.Stream.Read(p)
	if n > 0 || err == nil {
		return n, err
	}
	select {
	case <-s.failed:
		if s.failure != nil {
			return 0, s.failure
		}
	case <-time.After(afterwards):
	}
	return 0, err
}

// Close ends the connection.
func (s *stream) Close() error {
	err := s.Reset()
	s.end()
	return err
}

// LocalAddr implements [net.Conn], as the others. Deadlines are the business of requests.
func (s *stream) LocalAddr() net.Addr              { return address{} }
func (s *stream) RemoteAddr() net.Addr             { return address{} }
func (s *stream) SetDeadline(time.Time) error      { return nil }
func (s *stream) SetReadDeadline(time.Time) error  { return nil }
func (s *stream) SetWriteDeadline(time.Time) error { return nil }

// address is that of a stream, which has none.
type address struct{}

func (address) Network() string { return "portforward" }
func (address) String() string  { return "pod" }
