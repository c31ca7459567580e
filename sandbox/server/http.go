// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"compress/gzip"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
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
	if _, endless := out.Body.(watching); endless {
		w.WriteHeader(out.StatusCode)
		flush(w, out.Body)
		return
	}
	deliver(w, r, out)
}

// deliver sends a response that ends. An error is one of the client, which has gone.
func deliver(w http.ResponseWriter, r *http.Request, out *http.Response) {
	if !takesGzip(r) || out.ContentLength >= 0 && out.ContentLength <= compressible {
		w.WriteHeader(out.StatusCode)
		_, _ = io.Copy(w, out.Body)
		return
	}
	start := bufio.NewReaderSize(out.Body, compressible+1)
	if _, err := start.Peek(compressible + 1); err != nil { // it is shorter
		w.WriteHeader(out.StatusCode)
		_, _ = io.Copy(w, start)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Add("Vary", "Accept-Encoding")
	w.Header().Del("Content-Length")
	w.WriteHeader(out.StatusCode)
	packed, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return // not reached: the level is known
	}
	if _, err := io.Copy(packed, start); err == nil {
		_ = packed.Close()
	}
}

// compressible is how long a body has to be for a real server to compress it, in bytes.
const compressible = 128 << 10

// takesGzip reports whether a client takes compressed bodies.
func takesGzip(r *http.Request) bool {
	for encoding := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		if strings.TrimSpace(encoding) == "gzip" {
			return true
		}
	}
	return false
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
