// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package complete_test

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
	"github.com/handwerk-dev/handwerk/sandbox/workloads"
)

// crd has the schema that the test asks for.
const crd = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"foos.example.com"},
"spec":{"group":"example.com","scope":"Namespaced","names":{"kind":"Foo","plural":"foos"},"versions":[
{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":
{"spec":{"type":"object","properties":{"size":{"type":"integer"}}}}}}}]}}`

// send returns the body of a response, which has to have a code.
func send(t *testing.T, client *server.Client, method, path, body string, code int) string {
	t.Helper()
	h, err := http.NewRequestWithContext(t.Context(), method, "http://server"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.RoundTrip(h)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var out json.RawMessage
	if err := json.NewDecoder(response.Body).Decode(&out); err != nil && code == http.StatusOK {
		t.Fatal(err)
	}
	if response.StatusCode != code {
		t.Fatalf("%s %s: %d, want %d: %s", method, path, response.StatusCode, code, out)
	}
	return string(out)
}

// TestEachVersionHasAnOpenAPIDocument follows the list of OpenAPI documents, as kubectl explain does, and looks for the
// schemas of kinds in them.
func TestEachVersionHasAnOpenAPIDocument(t *testing.T) {
	t.Parallel()
	client := server.New(complete.Settings()).Admin()
	send(t, client, http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd, http.StatusCreated)
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	if err := json.Unmarshal([]byte(send(t, client, http.MethodGet, "/openapi/v3", "", http.StatusOK)), &index); err != nil {
		t.Fatal(err)
	}
	for _, each := range []struct{ version, kind, path, property string }{
		{"api/v1", "ConfigMap", "/api/v1/namespaces/{namespace}/configmaps", "binaryData"},
		{"apis/apps/v1", "Deployment", "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/status", "spec"},
		{"apis/storage.k8s.io/v1", "StorageClass", "/apis/storage.k8s.io/v1/storageclasses/{name}", "provisioner"},
		{"apis/example.com/v1", "Foo", "/apis/example.com/v1/namespaces/{namespace}/foos/{name}", "spec"},
	} {
		t.Run(each.version, func(t *testing.T) {
			text := send(t, client, http.MethodGet, index.Paths[each.version].ServerRelativeURL, "", http.StatusOK)
			checkDocument(t, text, each.kind, each.path, each.property)
		})
	}
	send(t, client, http.MethodGet, "/openapi/v3/apis/example.com/v2", "", http.StatusNotFound)
}

// TestANodeIsReadyFromItsBeginning holds that a node takes one write, as that of a kubelet, which creates it with its status.
func TestANodeIsReadyFromItsBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := complete.Settings()
		settings.Authorize = false
		memory := server.New(settings)
		var writes atomic.Int64
		link := memory.Client(func(r server.Request) error {
			if r.Writes() {
				writes.Add(1)
			}
			return nil
		}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			config := &rest.Config{Host: "http://cluster", Transport: link, QPS: -1}
			if err := workloads.Run(ctx, config, workloads.Settings{Nodes: 2}); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		cancel()
		running.Wait()
		nodes := send(t, memory.Admin(), http.MethodGet, "/api/v1/nodes", "", http.StatusOK)
		if n := strings.Count(nodes, `"reason":"KubeletReady"`); n != 2 || writes.Load() != 2 {
			t.Errorf("%d nodes of 2 are ready after %d writes: %s", n, writes.Load(), nodes)
		}
	})
}

// checkDocument checks that a document has a path, and a kind with a property, and all that its references name.
func checkDocument(t *testing.T, text, kind, path, property string) {
	t.Helper()
	var document struct {
		Paths      map[string]any
		Components struct {
			Schemas map[string]struct {
				Properties map[string]any
				Kinds      []struct{ Kind string } `json:"x-kubernetes-group-version-kind"`
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	if document.Paths[path] == nil {
		t.Errorf("the document has no path %s", path)
	}
	found := false
	for _, s := range document.Components.Schemas {
		isKind := slices.ContainsFunc(s.Kinds, func(k struct{ Kind string }) bool { return k.Kind == kind })
		found = found || isKind && s.Properties[property] != nil
	}
	if !found {
		t.Errorf("the document has no %s with a %s", kind, property)
	}
	for _, ref := range regexp.MustCompile(`"#/components/schemas/([^"]+)"`).FindAllStringSubmatch(text, -1) {
		if _, has := document.Components.Schemas[ref[1]]; !has {
			t.Errorf("the document refers to %s, which it does not have", ref[1])
		}
	}
}
