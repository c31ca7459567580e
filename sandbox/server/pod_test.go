// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/discovery"

	"github.com/handwerk-dev/handwerk/sandbox/server"
)

func TestAPodSaysThatItsContainersDoNotRun(t *testing.T) {
	w := newWire(t, server.Settings{})
	const pods = "/api/v1/namespaces/default/pods"
	w.send(http.MethodPost, pods, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"nodeName":"node-0","containers":[{"name":"c","image":"i"}]}}`)
	for request, want := range map[string]string{
		"GET /a/log":             "501 Pod a cannot answer: this is a cluster in memory, and no containers run in it",
		"POST /a/exec":           "501 Pod a cannot answer: this is a cluster in memory, and no containers run in it",
		"GET /a/attach":          "501 Pod a cannot answer: this is a cluster in memory, and no containers run in it",
		"POST /a/portforward":    "501 Pod a cannot answer: this is a cluster in memory, and no containers run in it",
		"GET /a/proxy/x/y":       "501 Pod a cannot answer: this is a cluster in memory, and no containers run in it",
		"GET /b/log":             `404 pods "b" not found`,
		"GET /a/log?container=x": "400 container x is not valid for pod a",
	} {
		method, path, _ := strings.Cut(request, " ")
		out := w.send(method, pods+path, "")
		if got := fmt.Sprint(out.code, " ", out.message()); got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
}

func TestDiscoveryHasTheSubresourcesOfPods(t *testing.T) {
	w := newWire(t, server.Settings{})
	for name, old := range map[string]bool{"aggregated": false, "old": true} {
		d := discovery.NewDiscoveryClientForConfigOrDie(w.config())
		d.UseLegacyDiscovery = old
		list, err := d.ServerResourcesForGroupVersion("v1")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range list.APIResources {
			if part, is := strings.CutPrefix(r.Name, "pods/"); is {
				got = append(got, part+" "+r.Kind+" "+r.Group+" "+strings.Join(r.Verbs, ","))
			}
		}
		slices.Sort(got)
		want := []string{
			"attach PodAttachOptions  create,get", "binding Binding  create", "ephemeralcontainers Pod  get,patch,update", "eviction Eviction policy create",
			"exec PodExecOptions  create,get", "log Pod  get", "portforward PodPortForwardOptions  create,get", "proxy PodProxyOptions  create,delete,get,patch,update",
			"resize Pod  get,patch,update", "status Pod  get,patch,update",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s discovery (-want +got):\n%s", name, diff)
		}
	}
}
