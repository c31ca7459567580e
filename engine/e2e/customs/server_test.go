// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package customs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
)

// endpoint is an API server.
type endpoint struct {
	host   string
	client *http.Client
}

// both returns the real server and one in memory.
func both(t *testing.T) (genuine, memory endpoint) {
	t.Helper()
	config := plane.Config()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	return endpoint{config.Host, client}, endpoint{"http://memory", &http.Client{Transport: server.New(complete.Settings()).Admin()}}
}

// answer is what a server says.
type answer struct {
	code int
	body map[string]any
}

// send sends a body in YAML.
func (s endpoint) send(ctx context.Context, t *testing.T, method, path, contentType, agent, body string) answer {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(body))
	if err != nil {
		t.Fatalf("reading %s: %v", body, err)
	}
	r, err := http.NewRequestWithContext(ctx, method, s.host+path, strings.NewReader(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("User-Agent", agent)
	response, err := s.client.Do(r)
	if err != nil {
		t.Fatalf("sending %s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("reading the response of %s %s: %v", method, path, err)
	}
	out := answer{code: response.StatusCode}
	if err := json.Unmarshal(text, &out.body); err != nil {
		out.body = map[string]any{"text": string(text)}
	}
	return out
}

const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// define creates a CRD and waits until all its versions are served.
func (s endpoint) define(t *testing.T, body string, paths ...string) {
	t.Helper()
	if got := s.send(t.Context(), t, http.MethodPost, crds, "application/json", "test", body); got.code != http.StatusCreated {
		t.Fatalf("creating the CRD: %d %v", got.code, got.body["message"])
	}
	for _, path := range paths {
		err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, cluster.Patience, true, func(ctx context.Context) (bool, error) {
			return s.send(ctx, t, http.MethodGet, path, "", "test", "").code == http.StatusOK, nil
		})
		if err != nil {
			t.Fatalf("waiting for %s: %v", path, err)
		}
	}
}

// undefine deletes a CRD.
func (s endpoint) undefine(t *testing.T, name string) {
	s.send(context.WithoutCancel(t.Context()), t, http.MethodDelete, crds+"/"+name, "application/json", "test", "")
}

// said is an answer without what each server chooses by itself.
func (a answer) said() string {
	if a.body["kind"] == "Status" && a.body["status"] != "Success" {
		return fmt.Sprint(a.code, " ", a.body["message"])
	}
	if metadata, is := a.body["metadata"].(map[string]any); is {
		for _, own := range []string{"uid", "creationTimestamp", "resourceVersion"} {
			delete(metadata, own)
		}
		managed, _ := metadata["managedFields"].([]any)
		for _, entry := range managed {
			delete(entry.(map[string]any), "time")
		}
		slices.SortFunc(managed, func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) // they are by time
	}
	out, err := yaml.Marshal(a.body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(a.code, "\n", string(out))
}
