// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/handwerk-dev/handwerk/sandbox/server"
)

func TestANamespaceLivesAsInARealCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, server.Settings{Controllers: true})
		const all, one = "/api/v1/namespaces", "/api/v1/namespaces/a"
		if diff := cmp.Diff([]string{"default", "kube-node-lease", "kube-public", "kube-system"}, w.send(http.MethodGet, all, "").names()); diff != "" {
			t.Errorf("the first namespaces (-want +got):\n%s", diff)
		}
		out := w.send(http.MethodPost, all, `{"metadata":{"name":"a"}}`)
		if got := fmt.Sprint(out.json["spec"], out.json["status"], out.meta("labels")); got != "map[finalizers:[kubernetes]] map[phase:Active]map[kubernetes.io/metadata.name:a]" {
			t.Errorf("a new one is %s", got)
		}
		for _, path := range []string{one + "/serviceaccounts/default", one + "/configmaps/kube-root-ca.crt"} {
			w.send(http.MethodDelete, path, "")
			time.Sleep(time.Second)
			if out := w.send(http.MethodGet, path, ""); out.code != http.StatusOK {
				t.Errorf("%s does not come back: %s", path, out.text)
			}
		}
		w.send(http.MethodPost, one+"/configmaps", `{"metadata":{"name":"held","finalizers":["example.com/f"]}}`)
		w.send(http.MethodDelete, one, "")
		time.Sleep(time.Minute)
		out = w.send(http.MethodGet, one, "")
		status, _ := out.json["status"].(map[string]any)
		var messages []string
		conditions, _ := status["conditions"].([]any)
		for _, c := range conditions {
			if c := c.(map[string]any); c["status"] == "True" {
				messages = append(messages, fmt.Sprint(c["message"]))
			}
		}
		if diff := cmp.Diff([]string{
			"Some resources are remaining: configmaps. has 1 resource instances",
			"Some content in the namespace has finalizers remaining: example.com/f in 1 resource instances",
		}, messages); diff != "" || status["phase"] != "Terminating" {
			t.Errorf("while something stays: %v (-want +got):\n%s", status["phase"], diff)
		}
		w.send(http.MethodPatch, one+"/configmaps/held", `{"metadata":{"finalizers":null}}`, "Content-Type", "application/merge-patch+json")
		time.Sleep(time.Minute)
		if out := w.send(http.MethodGet, one, ""); out.code != http.StatusNotFound {
			t.Errorf("it stays: %s", out.text)
		}
	})
}
