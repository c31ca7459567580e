// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"io"
	"maps"
	"net/http"
	"strconv"
)

// Handler serves requests that come over the network as [Client.RoundTrip] serves those of its process, with all
// rights.
func (s *Server) Handler() http.Handler { return s.Admin() }

// ServeHTTP answers a request that came over the network.
func (c *Client) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out, err := c.RoundTrip(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer out.Body.Close()
	maps.Copy(w.Header(), out.Header)
	if w.Header().Get("Cache-Control") == "" {
		w.Header().Set("Cache-Control", "no-cache, private")
	}
	if out.ContentLength >= 0 {
		w.Header().Set("Content-Length", strconv.FormatInt(out.ContentLength, 10))
	}
	w.WriteHeader(out.StatusCode)
	if _, endless := out.Body.(watching); endless {
		flush(w, out.Body)
		return
	}
	_, _ = io.Copy(w, out.Body) // an error is one of the client, which has gone
}

// flush copies the body of a watch, and sends the header and each part at once: the body is never complete.
func flush(w http.ResponseWriter, body io.Reader) {
	control := http.NewResponseController(w)
	part := make([]byte, partSize)
	for control.Flush() == nil {
		n, err := body.Read(part)
		if err != nil {
			return
		}
		if _, err := w.Write(part[:n]); err != nil {
			return
		}
	}
}
