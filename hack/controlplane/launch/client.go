// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"time"
)

// nodeName is the node that all pods run on.
const nodeName = "kwok-0"

// client sends the few requests to an API server that a launcher needs.
type client struct {
	http       *http.Client
	url, token string
}

func newClient(ca *authority, token, url string) *client {
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	return &client{http: &http.Client{Transport: transport, Timeout: 10 * time.Second}, url: url, token: token}
}

// ready fails while the API server is not ready to serve.
func (c *client) ready(ctx context.Context) error {
	_, err := c.get(ctx, "/readyz")
	return err
}

// accountReady fails while pods of the default namespace would be refused because their service account is missing.
func (c *client) accountReady(ctx context.Context) error {
	_, err := c.get(ctx, "/api/v1/namespaces/default/serviceaccounts/default")
	return err
}

// nodeReady makes the node if it is not there, and fails while kwok has not made it ready.
func (c *client) nodeReady(ctx context.Context) error {
	body, err := c.get(ctx, "/api/v1/nodes/"+nodeName)
	var answered *statusError
	if errors.As(err, &answered) && answered.code == http.StatusNotFound {
		_, err = c.do(ctx, http.MethodPost, "/api/v1/nodes", "application/json", node())
	}
	if err != nil {
		return err
	}
	if !conditionTrue(body, "Ready") {
		return fmt.Errorf("node %s is not ready", nodeName)
	}
	return nil
}

// node is the manifest of the node. kwok fills in its status.
func node() []byte {
	return fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": %q,
	"annotations": {"kwok.x-k8s.io/node": "fake"},
	"labels": {"kubernetes.io/hostname": %[1]q, "kubernetes.io/os": "linux", "kubernetes.io/arch": %[2]q, "type": "kwok"}}}`,
		nodeName, runtime.GOARCH)
}

// statusError is an answer that is not a success.
type statusError struct {
	code          int
	request, text string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s: %d %s: %.500s", e.request, e.code, http.StatusText(e.code), e.text)
}

func (c *client) get(ctx context.Context, path string) ([]byte, error) {
	return c.do(ctx, http.MethodGet, path, "application/json", nil)
}

// do sends a request with a body of that media type and returns the body of the answer, which has to
// be a success.
func (c *client) do(ctx context.Context, method, path, media string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", media)
	request.Header.Set("User-Agent", "controlplane")
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return nil, &statusError{code: response.StatusCode, request: method + " " + path, text: string(answer)}
	}
	return answer, nil
}
