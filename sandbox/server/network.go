// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/sandbox/server/webhook"
)

// network leads the server's calls to webhooks. Listeners in the process have ports that no machine has. A Service of type
// ExternalName stands for its host, as in a cluster. All else is up to the network of the machine.
type network struct {
	mu        sync.Mutex
	listeners map[string]*listener
	last      int
	external  map[string]string // hosts of Services by their names in DNS
}

// firstPort is greater than any port of TCP.
const firstPort = 1 << 16

// Listen returns a listener that only this server reaches, for webhooks in the same process: it needs no port of the machine, and
// goroutines in a bubble of testing/synctest may wait for it. The address is ignored; that of the listener is one of 127.0.0.1.
func (s *Server) Listen(context.Context, string, string) (net.Listener, error) {
	n := &s.network
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners == nil {
		n.listeners = map[string]*listener{}
	}
	l := &listener{network: n, at: net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+n.last)), calls: make(chan net.Conn), closed: make(chan struct{})}
	n.last++
	n.listeners[l.at] = l
	return l, nil
}

// follow notes the host of a Service that was written, or is gone.
func (n *network) follow(service *unstructured.Unstructured, gone bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	name := webhook.ServiceHost(service.GetNamespace(), service.GetName())
	host, _, _ := unstructured.NestedString(service.Object, "spec", "externalName")
	if kind, _, _ := unstructured.NestedString(service.Object, "spec", "type"); gone || kind != "ExternalName" || host == "" {
		delete(n.external, name)
		return
	}
	if n.external == nil {
		n.external = map[string]string{}
	}
	n.external[name] = host
}

// reaches reports whether a Service stands for a host.
func (n *network) reaches(namespace, name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.external[webhook.ServiceHost(namespace, name)] != ""
}

// dial connects to a listener of the process, or else by the network of the machine.
func (n *network) dial(ctx context.Context, kind, address string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[address]
	if host, port, err := net.SplitHostPort(address); err == nil && n.external[host] != "" {
		address = net.JoinHostPort(n.external[host], port)
	}
	n.mu.Unlock()
	if l == nil {
		return (&net.Dialer{}).DialContext(ctx, kind, address)
	}
	here, there := net.Pipe()
	select {
	case l.calls <- there:
		return here, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "dial", Net: kind, Addr: l.Addr(), Err: net.ErrClosed}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// listener takes the calls to one address.
type listener struct {
	network *network
	at      string
	calls   chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.calls:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *listener) Close() error {
	l.once.Do(func() {
		l.network.mu.Lock()
		delete(l.network.listeners, l.at)
		l.network.mu.Unlock()
		close(l.closed)
	})
	return nil
}

// Addr implements [net.Listener].
func (l *listener) Addr() net.Addr { return address(l.at) }

// address is that of a listener.
type address string

// Network implements [net.Addr].
func (address) Network() string { return "memory" }

// String implements [net.Addr].
func (a address) String() string { return string(a) }
