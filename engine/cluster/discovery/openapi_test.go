// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// publisher publishes OpenAPI documents by their paths, with a hash that a test can change.
type publisher struct {
	mu        sync.Mutex
	documents map[string]string
	hash      int
	status    int // of the index, when set
	requests  []string
}

// RoundTrip answers a request.
func (p *publisher) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, r.URL.Path)
	code, body := http.StatusOK, ""
	if path, is := strings.CutPrefix(r.URL.Path, "/openapi/v3/"); is {
		body = p.documents[path]
	} else {
		index := map[string]any{}
		for path := range p.documents {
			index[path] = map[string]string{"serverRelativeURL": fmt.Sprintf("/openapi/v3/%s?hash=%d", path, p.hash)}
		}
		data, err := json.Marshal(map[string]any{"paths": index})
		if err != nil {
			return nil, err
		}
		body = string(data)
		if p.status != 0 {
			code, body = p.status, `{"kind":"Status","apiVersion":"v1","reason":"Forbidden"}`
		}
	}
	return &http.Response{
		StatusCode: code, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

// asked returns the requests since it was called last.
func (p *publisher) asked() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := strings.Join(p.requests, " ")
	p.requests = nil
	return out
}

const appsDocument = `{"components": {"schemas": {
"io.k8s.api.apps.v1.Deployment": {"type": "object", "description": "long",
  "x-kubernetes-group-version-kind": [{"group": "apps", "version": "v1", "kind": "Deployment"}],
  "properties": {
    "metadata": {"description": "long", "default": {}, "allOf": [{"$ref": "#/components/schemas/Meta"}]},
    "spec": {"$ref": "#/components/schemas/Spec"}}},
"io.k8s.api.apps.v1.Other": {"type": "object",
  "x-kubernetes-group-version-kind": [{"group": "apps", "version": "v1", "kind": "Other"}]},
"DeleteOptions": {"type": "string",
  "x-kubernetes-group-version-kind": [{"group": "apps", "version": "v1", "kind": "DeleteOptions"}, {"group": "", "version": "v1", "kind": "DeleteOptions"}]},
"Meta": {"type": "object", "properties": {"labels": {"type": "object", "additionalProperties": {"type": "string"}}}},
"Port": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
"Spec": {"type": "object", "properties": {
  "port": {"$ref": "#/components/schemas/Port"},
  "list": {"type": "array", "items": {"$ref": "#/components/schemas/Meta"}},
  "map": {"type": "object", "additionalProperties": {"allOf": [{"$ref": "#/components/schemas/Meta"}]}},
  "lost": {"$ref": "#/components/schemas/Nowhere"},
  "itself": {"$ref": "#/components/schemas/Spec"}}}}}}`

func publish(t *testing.T) (*publisher, *Schemas) {
	t.Helper()
	p := &publisher{documents: map[string]string{"apis/apps/v1": appsDocument, "api/v1": `{"components":{"schemas":{}}}`}}
	return p, New(publishing(t, p), nil, nil).Schemas()
}

// publishing is a discovery client of what a publisher publishes.
func publishing(t *testing.T, p *publisher) discovery.DiscoveryInterfaceWithContext {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: "http://server", Transport: p})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

var (
	deploymentKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	otherKind      = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Other"}
)

func TestSchemasHaveWhatTheyReferTo(t *testing.T) {
	_, s := publish(t)
	got, err := s.Of(t.Context(), deploymentKind)
	if err != nil {
		t.Fatal(err)
	}
	const meta = `{"type": "object", "properties": {"labels": {"type": "object", "additionalProperties": {"type": "string"}}}}`
	const open = `{"type": "object", "x-kubernetes-preserve-unknown-fields": true}`
	want := &spec.Schema{}
	text := `{"type": "object", "x-kubernetes-group-version-kind": [{"group": "apps", "version": "v1", "kind": "Deployment"}],
		"properties": {"metadata": ` + meta + `, "spec": {"type": "object", "properties": {
		"port": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true},
		"list": {"type": "array", "items": ` + meta + `}, "map": {"type": "object", "additionalProperties": ` + meta + `},
		"lost": ` + open + `, "itself": ` + open + `}}}}`
	if err := json.Unmarshal([]byte(text), want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(asJSON(t, want), asJSON(t, got[deploymentKind])); diff != "" {
		t.Errorf("schema (-want +got):\n%s", diff)
	}
}

func asJSON(t *testing.T, value any) (out any) {
	t.Helper()
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSchemasThatAreNotPublished(t *testing.T) {
	_, s := publish(t)
	for _, kind := range []schema.GroupVersionKind{
		{Group: "apps", Version: "v1", Kind: "Deploymnt"}, {Group: "apps", Version: "v2", Kind: "Deployment"},
		{Version: "v1", Kind: "Pod"}, {Group: "apps", Version: "v1", Kind: "DeleteOptions"}, {},
	} {
		if got, err := s.Of(t.Context(), kind); err != nil || len(got) != 0 {
			t.Errorf("%v: got %v (%v), want nothing", kind, got, err)
		}
	}
}

func TestSchemasAreReadAgainWhenTheyHaveChanged(t *testing.T) {
	p, s := publish(t)
	const index, document = "/openapi/v3", "/openapi/v3/apis/apps/v1"
	steps := []struct {
		what   string
		change func()
		kinds  []schema.GroupVersionKind
		want   string
	}{
		{"first", nil, []schema.GroupVersionKind{deploymentKind}, index + " " + document},
		{"again", nil, []schema.GroupVersionKind{deploymentKind}, index},
		{"another kind", nil, []schema.GroupVersionKind{otherKind}, index + " " + document},
		{"both", nil, []schema.GroupVersionKind{deploymentKind, otherKind}, index},
		{"one that is not there", nil, []schema.GroupVersionKind{deploymentKind.GroupVersion().WithKind("No")}, index + " " + document},
		{"that again", nil, []schema.GroupVersionKind{deploymentKind.GroupVersion().WithKind("No")}, index},
		{"the server has others", func() { p.hash++ }, []schema.GroupVersionKind{deploymentKind, otherKind}, index + " " + document},
		{"and no more", nil, []schema.GroupVersionKind{deploymentKind, otherKind}, index},
	}
	for _, step := range steps {
		if step.change != nil {
			step.change()
		}
		got, err := s.Of(t.Context(), step.kinds...)
		if err != nil {
			t.Fatal(err)
		}
		if asked := p.asked(); asked != step.want {
			t.Errorf("%s: asked %q, want %q", step.what, asked, step.want)
		}
		if step.kinds[0].Kind != "No" && len(got) != len(step.kinds) {
			t.Errorf("%s: got %d schemas, want %d", step.what, len(got), len(step.kinds))
		}
	}
}

func TestAServerThatDoesNotServeItsSchemas(t *testing.T) {
	p, s := publish(t)
	p.status = http.StatusForbidden
	if _, err := s.Of(t.Context(), deploymentKind); err == nil || !strings.Contains(err.Error(), "asking for the schemas of the API server") {
		t.Errorf("error is %v", err)
	}
	p.status, p.documents["apis/apps/v1"] = 0, "no JSON"
	if _, err := s.Of(t.Context(), deploymentKind); err == nil || !strings.Contains(err.Error(), "reading the schemas of apps/v1") {
		t.Errorf("error is %v", err)
	}
}
