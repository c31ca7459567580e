// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// server answers discovery in the API server's formats, without a network.
type server struct {
	mu       sync.Mutex
	legacy   bool          // without aggregated discovery
	groups   string        // the document of all groups but the core one; empty for aggregatedGroups
	without  string        // a resource that is not served for the time being
	status   int           // of all answers, when set
	delay    time.Duration // of each answer
	requests []string
}

// set changes the server.
func (s *server) set(change func(*server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// asked returns how many requests there were since it was called last.
func (s *server) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.requests)
	s.requests = nil
	return n
}

func (s *server) client(t *testing.T) *discovery.DiscoveryClient {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: "http://server", Transport: s})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// RoundTrip answers a request.
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.requests = append(s.requests, r.URL.Path)
	status, kind, body := s.answer(r.URL.Path)
	delay := s.delay
	s.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return &http.Response{
		StatusCode: status, Request: r, Header: http.Header{"Content-Type": {kind}},
		Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

func (s *server) answer(path string) (status int, kind, body string) {
	if s.status != 0 {
		return s.status, "application/json", `{"kind":"Status","apiVersion":"v1"}`
	}
	if s.legacy {
		return s.answerLegacy(path)
	}
	kind = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	switch path {
	case "/api":
		return http.StatusOK, kind, aggregatedCore
	case "/apis":
		groups := cmp.Or(s.groups, aggregatedGroups)
		if s.without == "" {
			return http.StatusOK, kind, groups
		}
		return http.StatusOK, kind, strings.ReplaceAll(groups, `"`+s.without+`"`, `"others"`)
	}
	return http.StatusNotFound, "application/json", `{"kind":"Status","apiVersion":"v1","reason":"NotFound"}`
}

func (s *server) answerLegacy(path string) (status int, kind, body string) {
	group := func(name string, versions ...string) metav1.APIGroup {
		g := metav1.APIGroup{Name: name}
		for _, v := range versions {
			g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + v, Version: v})
		}
		g.PreferredVersion = g.Versions[0]
		return g
	}
	resource := func(name, kind string, verbs ...string) metav1.APIResource {
		out := metav1.APIResource{Name: name, Kind: kind, SingularName: strings.ToLower(kind), Namespaced: true, Verbs: verbs}
		if kind == "ComponentStatus" {
			out.Namespaced, out.ShortNames = false, []string{"cs"}
		}
		return out
	}
	answers := map[string]any{
		"/api": metav1.APIVersions{Versions: []string{"v1"}},
		"/apis": metav1.APIGroupList{Groups: []metav1.APIGroup{
			group("apps", "v1"), group("example.com", "v1", "v1beta1"), group("half.example.com", "v2", "v1"),
			group("metrics.k8s.io", "v1beta1"), group("gone.example.com", "v1"),
		}},
		"/api/v1": metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
			resource("componentstatuses", "ComponentStatus", "get", "list"),
			resource("pods", "Pod", "create", "get", "list", "watch"), resource("pods/status", "Pod", "get", "patch"),
		}},
		"/apis/apps/v1": metav1.APIResourceList{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
			resource("deployments", "Deployment", "get", "list", "watch"),
			resource("deployments/scale", "Scale", "get"), resource("deployments/status", "Deployment", "patch"),
		}},
		"/apis/example.com/v1": metav1.APIResourceList{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{
			resource("foos", "Foo", "list", "watch"), resource("foos/scale", "Scale", "get"),
		}},
		"/apis/example.com/v1beta1": metav1.APIResourceList{GroupVersion: "example.com/v1beta1", APIResources: []metav1.APIResource{
			resource("foos", "Foo", "list", "watch"), resource("bars", "Bar", "list", "watch"),
		}},
		"/apis/half.example.com/v1": metav1.APIResourceList{GroupVersion: "half.example.com/v1", APIResources: []metav1.APIResource{
			resource("widgets", "Widget", "list", "watch"),
		}},
	}
	if answer, found := answers[path]; found {
		text, err := json.Marshal(answer)
		if err != nil {
			panic(err)
		}
		return http.StatusOK, "application/json", string(text)
	}
	if strings.HasPrefix(path, "/apis/gone.example.com") {
		return http.StatusNotFound, "application/json", `{"kind":"Status","apiVersion":"v1","reason":"NotFound","code":404}`
	}
	return http.StatusServiceUnavailable, "text/plain", "service unavailable"
}

const aggregatedCore = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[
{"metadata":{"creationTimestamp":null},"versions":[{"version":"v1","freshness":"Current","resources":[
  {"resource":"componentstatuses","responseKind":{"group":"","version":"","kind":"ComponentStatus"},"scope":"Cluster",
   "singularResource":"componentstatus","verbs":["get","list"],"shortNames":["cs"]},
  {"resource":"pods","responseKind":{"group":"","version":"","kind":"Pod"},"scope":"Namespaced","singularResource":"pod",
   "verbs":["create","get","list","watch"],"subresources":[
     {"subresource":"eviction","responseKind":{"group":"policy","version":"v1","kind":"Eviction"},"verbs":["create"]},
     {"subresource":"status","responseKind":{"group":"","version":"","kind":"Pod"},"verbs":["get","patch"]}]}]}]}]}`

const aggregatedGroups = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[
{"metadata":{"name":"apps","creationTimestamp":null},"versions":[{"version":"v1","freshness":"Current","resources":[
  {"resource":"drains","scope":"Namespaced","singularResource":"","verbs":[],"subresources":[
     {"subresource":"status","responseKind":{"group":"apps","version":"v1","kind":"Drain"},"verbs":["patch"]}]},
  {"resource":"deployments","responseKind":{"group":"","version":"","kind":"Deployment"},"scope":"Namespaced",
   "singularResource":"deployment","verbs":["get","list","watch"],"subresources":[
     {"subresource":"scale","responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"},"verbs":["get"]},
     {"subresource":"status","responseKind":{"group":"","version":"","kind":"Deployment"},"verbs":["patch"]}]}]}]},
{"metadata":{"name":"example.com","creationTimestamp":null},"versions":[
  {"version":"v1","freshness":"Current","resources":[
    {"resource":"foos","responseKind":{"group":"example.com","version":"v1","kind":"Foo"},"scope":"Namespaced",
     "singularResource":"foo","verbs":["list","watch"],"subresources":[
       {"subresource":"scale","responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"},"verbs":["get"]}]}]},
  {"version":"v1beta1","freshness":"Current","resources":[
    {"resource":"foos","responseKind":{"group":"example.com","version":"v1beta1","kind":"Foo"},"scope":"Namespaced",
     "singularResource":"foo","verbs":["list","watch"]},
    {"resource":"bars","responseKind":{"group":"example.com","version":"v1beta1","kind":"Bar"},"scope":"Namespaced",
     "singularResource":"bar","verbs":["list","watch"]}]}]},
{"metadata":{"name":"half.example.com","creationTimestamp":null},"versions":[
  {"version":"v2","freshness":"Stale"},
  {"version":"v1","freshness":"Current","resources":[
    {"resource":"widgets","responseKind":{"group":"half.example.com","version":"v1","kind":"Widget"},"scope":"Namespaced",
     "singularResource":"widget","verbs":["list","watch"]}]}]},
{"metadata":{"name":"metrics.k8s.io","creationTimestamp":null},"versions":[{"version":"v1beta1","freshness":"Stale"}]}]}`
