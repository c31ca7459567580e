// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
)

// described says what discovery has of a resource.
func described(t *testing.T, d discovery.DiscoveryInterface, groupVersion string, names ...string) (out []string) {
	t.Helper()
	list, err := d.ServerResourcesForGroupVersion(groupVersion)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list.APIResources {
		for _, name := range names {
			if r.Name == name {
				out = append(out, fmt.Sprintf("%s %s %t %q %v %v %d", r.Name, r.Kind, r.Namespaced, r.SingularName, r.ShortNames, r.Categories, len(r.Verbs)))
			}
		}
	}
	return out
}

func TestDiscoverySaysTheSameInBothForms(t *testing.T) {
	w := newFoos(t)
	aggregated := discovery.NewDiscoveryClientForConfigOrDie(w.config())
	old := discovery.NewDiscoveryClientForConfigOrDie(w.config())
	old.UseLegacyDiscovery = true
	want := map[string][]string{
		"v1":             {`configmaps ConfigMap true "configmap" [cm] [] 8`, `namespaces Namespace false "namespace" [ns] [] 7`, `namespaces/status Namespace false "" [] [] 3`, `pods Pod true "pod" [po] [all] 8`},
		"example.com/v1": {`foos Foo true "foo" [fo] [all mine] 8`, `foos/status Foo true "" [] [] 3`},
	}
	for name, d := range map[string]discovery.DiscoveryInterface{"aggregated": aggregated, "old": old} {
		for groupVersion, lines := range want {
			got := described(t, d, groupVersion, "configmaps", "namespaces", "namespaces/status", "pods", "foos", "foos/status")
			if diff := cmp.Diff(lines, got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", name, groupVersion, diff)
			}
		}
		groups, lists, err := d.ServerGroupsAndResources()
		if err != nil || len(groups) < 10 || len(lists) < len(groups) {
			t.Errorf("%s: %d groups, %d lists, %v", name, len(groups), len(lists), err)
		}
		mapped, err := restmapper.GetAPIGroupResources(d)
		if err != nil {
			t.Fatal(err)
		}
		gvr, err := restmapper.NewDiscoveryRESTMapper(mapped).ResourceFor(schema.GroupVersionResource{Resource: "foo"})
		if err != nil || gvr.String() != "example.com/v1, Resource=foos" {
			t.Errorf("%s: the singular name is mapped to %v: %v", name, gvr, err)
		}
	}
}

func TestClientsNeedNotLoadDiscoveryAgain(t *testing.T) {
	w := newFoos(t)
	ask := func(tag string) answer {
		return w.send(http.MethodGet, "/apis", "", "Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", "If-None-Match", tag)
	}
	first := ask("")
	tag := first.header.Get("Etag")
	if again := ask(tag); first.code != http.StatusOK || again.code != http.StatusNotModified || again.text != "" || tag == "" {
		t.Errorf("tag %s: %d, then %d %s", tag, first.code, again.code, again.text)
	}
	w.send(http.MethodPatch, foosDefinition, `{"spec":{"names":{"categories":["all"]}}}`, "Content-Type", "application/merge-patch+json")
	if changed := ask(tag); changed.code != http.StatusOK || changed.header.Get("Etag") == tag {
		t.Errorf("after a change: %d, tag %s", changed.code, changed.header.Get("Etag"))
	}
}

func TestPathsThatAreNoResources(t *testing.T) {
	w := newFoos(t)
	for path, want := range map[string]string{
		"/healthz":             "200 ok",
		"/livez/ping":          "200 ok",
		"/readyz/etcd":         "200 ok",
		"/readyz?verbose":      "200 [+]ping ok\n[+]log ok\n[+]etcd ok\nreadyz check passed\n",
		"/readyz/other":        "404 404 page not found\n",
		"/nope":                "404 404 page not found\n",
		"/apis/nope.io/v1":     "404 404 page not found\n",
		"/apis/example.com/v9": "404 404 page not found\n",
		"/api":                 `200 {"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"cluster"}]}`,
		"/apis/example.com":    `200 {"kind":"APIGroup","apiVersion":"v1","name":"example.com","versions":[{"groupVersion":"example.com/v1","version":"v1"}],"preferredVersion":{"groupVersion":"example.com/v1","version":"v1"}}`,
	} {
		out := w.send(http.MethodGet, path, "")
		if got := fmt.Sprint(out.code, " ", out.text); got != want {
			t.Errorf("%s\n  got  %s\n  want %s", path, got, want)
		}
	}
	for _, path := range []string{"/version", "/healthz", "/api", "/apis/example.com"} {
		if out := w.send(http.MethodDelete, path, ""); out.code != http.StatusMethodNotAllowed {
			t.Errorf("DELETE %s: %d", path, out.code)
		}
	}
	if out := w.send(http.MethodGet, "/", ""); !strings.Contains(out.text, `"/apis/apps/v1"`) || !strings.Contains(out.text, `"/livez"`) {
		t.Errorf("the paths: %s", out.text)
	}
	version, err := discovery.NewDiscoveryClientForConfigOrDie(w.config()).ServerVersion()
	if err != nil || version.Major != "1" || version.GoVersion == "" {
		t.Errorf("the version: %v, %v", version, err)
	}
}
