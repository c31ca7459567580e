// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// request is one request to an API server.
type request struct {
	method, path string
	// body is empty for a request without one.
	body string
	// header changes that of all requests; an empty value takes one away.
	header map[string]string
}

// String returns the method and the path.
func (r request) String() string { return r.method + " " + r.path }

// answer is what a client sees of a response.
type answer struct {
	Code   int               `json:"code"`
	Header map[string]string `json:"header,omitempty"`
	// Body is the tree of JSON, the events of a watch, or a text.
	Body any `json:"body,omitempty"`

	etag string
}

// compared are the names of the headers that are compared.
var compared = []string{"Content-Type", "Warning", "Content-Encoding", "Location", "Allow", "Retry-After"}

// connection sends requests to a server.
type connection struct {
	server *Server
	client *http.Client
}

func connect(v *Server) connection {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableCompression: true}
	return connection{v, &http.Client{Transport: transport, Timeout: time.Minute}}
}

// send sends a request, and returns the answer as it came.
func (c connection) send(ctx context.Context, r request) (answer, error) {
	h, err := http.NewRequestWithContext(ctx, r.method, c.server.URL+r.path, strings.NewReader(r.body))
	if err != nil {
		return answer{}, err
	}
	h.Header.Set("Authorization", "Bearer "+c.server.Token)
	h.Header.Set("Accept", "application/json")
	h.Header.Set("User-Agent", "likeness/1")
	if r.body != "" {
		h.Header.Set("Content-Type", "application/json")
	}
	for name, value := range r.header {
		if h.Header.Set(name, value); value == "" {
			h.Header.Del(name)
		}
	}
	response, err := c.client.Do(h)
	if err != nil {
		return answer{}, fmt.Errorf("sending %s: %w", r, err)
	}
	defer response.Body.Close()
	data, err := bodyOf(response)
	if err != nil {
		return answer{}, fmt.Errorf("reading the answer to %s: %w", r, err)
	}
	out := answer{Code: response.StatusCode, Header: map[string]string{}, etag: response.Header.Get("Etag")}
	for _, name := range compared {
		if values := response.Header.Values(name); len(values) > 0 {
			out.Header[name] = strings.Join(values, "\n")
		}
	}
	out.Body = tree(response.Header.Get("Content-Type"), data)
	return out, nil
}

// bodyOf reads the body of a response, and unpacks it: how densely a server packs does not matter.
func bodyOf(response *http.Response) ([]byte, error) {
	if response.Header.Get("Content-Encoding") != "gzip" {
		return io.ReadAll(response.Body)
	}
	packed, err := gzip.NewReader(response.Body)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(packed)
}

// tree returns a body as a tree, or as a text if it is none.
func tree(kind string, data []byte) (out any) {
	kind, _, _ = strings.Cut(kind, ";")
	switch kind {
	case "application/json":
		decoder := json.NewDecoder(bytes.NewReader(data))
		var all []any
		for decoder.More() {
			var one any
			if err := decoder.Decode(&one); err != nil {
				return string(data)
			}
			all = append(all, one)
		}
		if len(all) == 1 {
			return all[0]
		}
		return all // the events of a watch
	case "application/yaml":
		if yaml.Unmarshal(data, &out) == nil {
			return out
		}
	case "text/plain", "text/html":
		return string(data)
	}
	return fmt.Sprintf("%d bytes or more", len(data)/1000*1000)
}
