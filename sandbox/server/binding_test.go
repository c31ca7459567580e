// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/sandbox/server"
)

func TestAPodIsBoundOnce(t *testing.T) {
	const pods, bound = "/api/v1/namespaces/default/pods", `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"a"},"target":{"kind":"Node","name":"n1"}}`
	w := newWire(t, server.Settings{})
	w.send(http.MethodPost, pods, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"a","image":"a"}]}}`)
	if out := w.send(http.MethodPost, pods+"/b/binding", strings.Replace(bound, `"a"`, `"b"`, 1)); out.code != http.StatusNotFound || out.message() != `pods "b" not found` {
		t.Errorf("binding no Pod: %d %s", out.code, out.text)
	}
	if out := w.send(http.MethodPost, pods+"/a/binding", `{"metadata":{"name":"a","uid":"x"},"target":{"name":"n1"}}`); out.code != http.StatusConflict {
		t.Errorf("binding another Pod of this name: %d %s", out.code, out.text)
	}
	if out := w.send(http.MethodPost, pods+"/a/binding", bound); out.code != http.StatusCreated || out.json["status"] != "Success" {
		t.Errorf("binding: %d %s", out.code, out.text)
	}
	const twice = `Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n1"`
	if out := w.send(http.MethodPost, pods+"/a/binding", bound); out.code != http.StatusConflict || out.message() != twice {
		t.Errorf("binding again: %d %s", out.code, out.text)
	}
	pod := w.send(http.MethodGet, pods+"/a", "").text
	for _, part := range []string{`"nodeName":"n1"`, `"type":"PodScheduled"`} {
		if !strings.Contains(pod, part) {
			t.Errorf("the bound Pod lacks %s: %s", part, pod)
		}
	}
	w.send(http.MethodDelete, pods+"/a", "")
	if out := w.send(http.MethodPost, pods+"/a/binding", bound); out.message() != `Operation cannot be fulfilled on pods/binding "a": pod a is being deleted, cannot be assigned to a host` {
		t.Errorf("binding a Pod that is being deleted: %s", out.text)
	}
}

func TestADeploymentsAnnotationsAreWrittenWithItsStatus(t *testing.T) {
	const deployments = "/apis/apps/v1/namespaces/default/deployments"
	w := newWire(t, server.Settings{})
	w.send(http.MethodPost, deployments, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"}}`)
	out := w.send(http.MethodPatch, deployments+"/a/status", `{"metadata":{"annotations":{"a":"b"},"labels":{"a":"b"}},"status":{"replicas":1},"spec":{"replicas":2}}`,
		"Content-Type", "application/merge-patch+json")
	if out.meta("annotations") != "map[a:b]" || out.meta("labels") != "" || out.meta("generation") != "1" {
		t.Errorf("the Deployment is %s", out.text)
	}
}
