// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"io"
	"maps"
	"net/http"
)

// Handler serves requests that come over the network as [Client.RoundTrip] serves those of its process.
func (s *Server) Handler() http.Handler { return handler{s.Admin()} }

// handler serves all requests through one client.
type handler struct{ client *Client }

// ServeHTTP answers a request.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out, err := h.client.RoundTrip(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer out.Body.Close()
	maps.Copy(w.Header(), out.Header)
	w.WriteHeader(out.StatusCode)
	flush(w, out.Body)
}

// flush copies a body, and sends each part at once: that of a watch is never complete.
func flush(w http.ResponseWriter, body io.Reader) {
	control := http.NewResponseController(w)
	part := make([]byte, 32<<10)
	for {
		n, err := body.Read(part)
		if n > 0 {
			if _, err := w.Write(part[:n]); err != nil {
				return
			}
			if err := control.Flush(); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
