// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"net"
	"net/http"
	"sync"
)

// mostConnections is the greatest number of open connections of an endpoint, and mostOfClient that from one address. So no
// client can keep the kubelet or Prometheus out.
const (
	mostConnections = 512
	mostOfClient    = 64
)

// clients counts the connections of an endpoint by the address that they come from.
type clients struct {
	mu  sync.Mutex
	all int
	of  map[string]int
}

// connState is the server's hook. It closes a new connection if there are too many.
func (c *clients) connState(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	from := host(conn.RemoteAddr().String())
	switch state {
	case http.StateNew:
		if c.of == nil {
			c.of = map[string]int{}
		}
		c.all++
		c.of[from]++
		if c.all > mostConnections || c.of[from] > mostOfClient {
			_ = conn.Close() // the server notices when it reads, and takes it off the count
		}
	case http.StateClosed, http.StateHijacked:
		c.all--
		if c.of[from]--; c.of[from] == 0 {
			delete(c.of, from)
		}
	}
}

// host is an address without its port.
func host(address string) string {
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return name
}
