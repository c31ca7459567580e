// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire speaks to an API server with as little work as net/http allows: requests that are made by hand, answers
// that are not read, watches whose events are bytes. The loader and the minimal client use it.
package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// JSON is what is sent and accepted unless a request says something else; Merge is the type of merge patches.
const (
	JSON  = "application/json"
	Merge = "application/merge-patch+json"
)

// Client sends requests. Its methods may be called by any number of goroutines.
type Client struct {
	server       *url.URL
	agent, token string
	transport    *http.Transport
	// headers are shared by all requests of a kind, by content type.
	headers map[string]http.Header
}

// New returns a client for the server of a kubeconfig as hack/controlplane writes them. It keeps that many connections
// of HTTP/1.1, which costs less than one of HTTP/2.
func New(kubeconfig, agent string, connections int) (*Client, error) {
	settings, err := read(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", kubeconfig, err)
	}
	server, err := url.Parse(string(settings["server"]))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", kubeconfig, err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(settings["certificate-authority-data"])
	c := &Client{server: server, agent: agent, token: string(settings["token"]), headers: map[string]http.Header{}}
	c.transport = &http.Transport{
		TLSClientConfig:    &tls.Config{RootCAs: roots},
		DisableCompression: true, MaxIdleConnsPerHost: connections,
		Protocols: &http.Protocols{},
	}
	c.transport.Protocols.SetHTTP1(true)
	for _, kind := range []string{"", JSON, Merge} {
		c.headers[kind] = c.header(kind, JSON)
	}
	// Who changes an object does not ask for the whole of it.
	c.headers[Merge].Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	return c, nil
}

// read returns what stands in a kubeconfig that has one cluster and one user.
func read(kubeconfig string) (map[string][]byte, error) {
	data, err := os.ReadFile(kubeconfig)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if !strings.HasSuffix(key, "-data") {
			out[key] = []byte(value)
			continue
		}
		if out[key], err = base64.StdEncoding.DecodeString(value); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *Client) header(contentType, accept string) http.Header {
	h := http.Header{"User-Agent": {c.agent}, "Authorization": {"Bearer " + c.token}, "Accept": {accept}}
	if contentType != "" {
		h.Set("Content-Type", contentType)
	}
	return h
}

// Refused is an answer without success.
type Refused struct {
	// Code is the status.
	Code int
	// Text is the beginning of the body.
	Text string
}

// Error returns the answer.
func (r *Refused) Error() string { return fmt.Sprintf("status %d: %s", r.Code, r.Text) }

// Code returns the status of an answer that was refused, and otherwise 0.
func Code(err error) int {
	if refused, ok := errors.AsType[*Refused](err); ok {
		return refused.Code
	}
	return 0
}

// Send sends a request and throws the answer away.
func (c *Client) Send(ctx context.Context, method, path, contentType string, body []byte) error {
	answer, err := c.do(ctx, method, &url.URL{Path: path}, c.headers[contentType], body)
	if err != nil {
		return err
	}
	defer answer.Close()
	_, err = io.Copy(io.Discard, answer)
	return err
}

// Get returns an answer as a whole.
func (c *Client) Get(ctx context.Context, target string) ([]byte, error) {
	answer, err := c.Open(ctx, target, JSON)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	return io.ReadAll(answer)
}

// Open returns an answer to be read.
func (c *Client) Open(ctx context.Context, target, accept string) (io.ReadCloser, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	return c.do(ctx, http.MethodGet, u, c.header("", accept), nil)
}

func (c *Client) do(ctx context.Context, method string, target *url.URL, header http.Header, body []byte) (io.ReadCloser, error) {
	target.Scheme, target.Host = c.server.Scheme, c.server.Host
	r := (&http.Request{Method: method, URL: target, Header: header, Host: target.Host}).WithContext(ctx)
	if len(body) > 0 {
		r.ContentLength = int64(len(body))
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	answer, err := c.transport.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, target.Path, err)
	}
	if answer.StatusCode < 300 {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 500)) // what can be had of it
	return nil, fmt.Errorf("%s %s: %w", method, target.Path, &Refused{answer.StatusCode, string(text)})
}
