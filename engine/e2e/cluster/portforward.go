// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"io"
	"net"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	constants "k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// PortForward answers requests to forward ports to a Pod as a kubelet does, by SPDY. All Pods share the network of this machine.
func PortForward(w http.ResponseWriter, r *http.Request) {
	if _, err := httpstream.Handshake(r, w, []string{constants.PortForwardV1Name}); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	opened := make(chan httpstream.Stream)
	ended := make(chan struct{})
	defer close(ended)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		go func() {
			select {
			case opened <- s:
			case <-ended:
			}
		}()
		return nil
	})
	if conn == nil {
		return
	}
	defer func() { _ = conn.Close() }()
	pairs := map[string]*pair{}
	for {
		select {
		case s := <-opened:
			id := s.Headers().Get(corev1.PortForwardRequestIDHeader)
			if pairs[id] == nil {
				pairs[id] = &pair{port: s.Headers().Get(corev1.PortHeader)}
			}
			if pairs[id].add(s) {
				go pairs[id].join()
			}
		case <-conn.CloseChan():
			return
		}
	}
}

// pair are the two streams of one connection to a port.
type pair struct {
	port          string
	data, failure httpstream.Stream
}

// add adds a stream, and reports whether both are there.
func (p *pair) add(s httpstream.Stream) bool {
	if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
		p.failure = s
	} else {
		p.data = s
	}
	return p.data != nil && p.failure != nil
}

// join connects the streams to the port.
func (p *pair) join() {
	defer func() {
		_ = p.data.Close()
		_ = p.failure.Close()
	}()
	to, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", p.port))
	if err != nil {
		_, _ = fmt.Fprintf(p.failure, "failed to connect to localhost:%s: %v", p.port, err)
		return
	}
	defer func() { _ = to.Close() }()
	go func() { _, _ = io.Copy(to, p.data) }()
	_, _ = io.Copy(p.data, to)
}
