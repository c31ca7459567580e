// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package webhook calls webhooks as an API server does.
package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxAnswer is the largest answer of a webhook in bytes.
const maxAnswer = 16 << 20

// Target is a webhook. It is safe for use by several goroutines.
type Target struct {
	url    string
	client *http.Client
}

// Dial connects to an address, as [net.Dialer.DialContext] does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// New returns the webhook of a URL, whose server is known by certificates in PEM, or by those of the system. It waits for as long as
// the timeout for an answer.
func New(address string, authorities []byte, timeout time.Duration, dial Dial) (*Target, error) {
	at, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	query := at.Query()
	query.Set("timeout", timeout.String())
	at.RawQuery = query.Encode()
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(authorities) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(authorities) {
			return nil, errors.New("unable to load root certificates: unable to parse bytes as PEM block")
		}
	}
	// Connections are not kept: nothing would close them.
	return &Target{at.String(), &http.Client{Timeout: timeout, Transport: &http.Transport{DialContext: dial, TLSClientConfig: config, DisableKeepAlives: true}}}, nil
}

// ServiceAddress returns the URL of a webhook behind a Service, by its name in DNS. The port defaults to 443, and the path to none. No
// Service of the sandbox takes connections, but a program on the machine may answer to the name.
func ServiceAddress(namespace, name string, port *int32, path *string) string {
	number, suffix := int32(443), ""
	if port != nil {
		number = *port
	}
	if path != nil {
		suffix = "/" + strings.TrimPrefix(*path, "/")
	}
	return fmt.Sprintf("https://%s:%d%s", ServiceHost(namespace, name), number, suffix)
}

// ServiceHost returns the name of a Service in DNS.
func ServiceHost(namespace, name string) string { return name + "." + namespace + ".svc" }

// Call sends a review, and reads the answer into another one.
func (t *Target) Call(ctx context.Context, review, into any) error {
	body, err := json.Marshal(review)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, */*")
	response, err := t.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return err
	}
	if response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("the server responded with the status code %d: %s", response.StatusCode, bytes.TrimSpace(data[:min(len(data), 200)]))
	}
	return json.Unmarshal(data, into)
}
