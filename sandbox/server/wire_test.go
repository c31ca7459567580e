// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/sandbox/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// wire is a server as its clients see it: requests and responses.
type wire struct {
	t      testing.TB
	server *server.Server
	link   http.RoundTripper
}

// newWire returns a new server with the client-go clients' way to it.
func newWire(t testing.TB, settings server.Settings) wire {
	t.Helper()
	server := server.New(settings)
	return wire{t, server, server.Admin()}
}

func (w wire) config() *rest.Config {
	return &rest.Config{Host: "http://cluster", Transport: w.link, QPS: -1, UserAgent: "wire/1"}
}

func (w wire) typed() kubernetes.Interface { return kubernetes.NewForConfigOrDie(w.config()) }

// answer is a response whose body has been read.
type answer struct {
	code   int
	header http.Header
	text   string
	json   map[string]any
}

// message is that of a Status.
func (a answer) message() string { return fmt.Sprint(a.json["message"]) }

// names are those of the items of a list.
func (a answer) names() (out []string) {
	items, _ := a.json["items"].([]any)
	for _, item := range items {
		metadata := item.(map[string]any)["metadata"].(map[string]any)
		out = append(out, metadata["name"].(string))
	}
	return out
}

// meta is a field of the metadata as text; empty if it is absent.
func (a answer) meta(field string) string {
	metadata, _ := a.json["metadata"].(map[string]any)
	if value, found := metadata[field]; found {
		return fmt.Sprint(value)
	}
	return ""
}

// send sends a request. Headers are pairs of a name and a value.
func (w wire) send(method, path, body string, headers ...string) answer {
	w.t.Helper()
	response := w.open(method, path, body, headers...)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	out := answer{code: response.StatusCode, header: response.Header, text: string(data)}
	if strings.Contains(response.Header.Get("Content-Type"), "json") {
		if err := json.Unmarshal(data, &out.json); err != nil {
			w.t.Fatalf("%s %s: %v: %s", method, path, err, data)
		}
	}
	return out
}

// open sends a request and leaves the body of the response to be read.
func (w wire) open(method, path, body string, headers ...string) *http.Response {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, "http://cluster"+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("User-Agent", "wire/1")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := w.link.RoundTrip(r)
	if err != nil {
		w.t.Fatal(err)
	}
	return response
}

// put creates a ConfigMap.
func (w wire) put(namespace, name string, labels ...string) answer {
	w.t.Helper()
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"labels":{"part":%q}}}`, name, strings.Join(labels, ""))
	out := w.send(http.MethodPost, "/api/v1/namespaces/"+namespace+"/configmaps", body)
	if out.code != http.StatusCreated {
		w.t.Fatalf("creating %s: %s", name, out.text)
	}
	return out
}
