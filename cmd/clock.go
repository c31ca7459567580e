// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"net/http"
	"sync/atomic"
	"time"
)

// serverClock is the clock of an API server, as its answers have it in their header Date. The clock of the machine of a person may be
// wrong; those of the cluster agree.
type serverClock struct {
	// ahead is by how much the server's clock is ahead of this machine's.
	ahead atomic.Int64
}

// now returns the time of the last answer and what has passed since. Before the first answer it is this machine's.
func (c *serverClock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// read returns a round tripper that reads the clock from each answer.
func (c *serverClock) read(next http.RoundTripper) http.RoundTripper { return readsClock{c, next} }

// readsClock is that round tripper.
type readsClock struct {
	clock *serverClock
	next  http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (r readsClock) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := r.next.RoundTrip(request)
	if err == nil {
		if at, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
			r.clock.ahead.Store(int64(time.Until(at)))
		}
	}
	return answer, err
}
