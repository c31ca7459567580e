// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/catalog"
)

// serving answers discovery with a resource bars in version v1 of example.org.
type serving struct{}

func (serving) RoundTrip(r *http.Request) (*http.Response, error) {
	body, found := map[string]string{
		"/api":  `{"kind": "APIVersions", "versions": []}`,
		"/apis": `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "example.org", "versions": [{"groupVersion": "example.org/v1", "version": "v1"}]}]}`,
		"/apis/example.org/v1": `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "example.org/v1",
			"resources": [{"name": "bars", "kind": "Bar", "namespaced": true, "verbs": ["list", "watch"]}]}`,
	}[r.URL.Path]
	status := http.StatusOK
	if !found {
		status = http.StatusNotFound
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

// TestElsewhereIsAnotherVersion holds that what came between two questions is not said to be there in
// another version than its own.
func TestElsewhereIsAnotherVersion(t *testing.T) {
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: "http://server", Transport: serving{}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"bars.v1.example.org": "", "bars.v1alpha1.example.org": "v1", "foos.v1.example.org": ""} {
		parsed, err := dsl.ParseResourceName(name)
		if err != nil {
			t.Fatal(err)
		}
		l := &locator{at: &Location{name: parsed}, catalog: catalog.New(client, nil, nil)}
		if got := l.elsewhere(t.Context()); got != want {
			t.Errorf("%s is said to be there as %q, want %q", name, got, want)
		}
	}
}
