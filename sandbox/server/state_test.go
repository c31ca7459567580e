// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/handwerk-dev/handwerk/sandbox/server"
)

const thingCRD = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.a.example.com"},
	"spec":{"group":"a.example.com","scope":"Namespaced","names":{"plural":"things","kind":"Thing"},"versions":[{"name":"v1","served":true,"storage":true}]}}`

func TestAServerGoesOnWithASavedState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := server.Settings{Controllers: true, Authorize: true}
		before := newWire(t, full)
		before.send(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", thingCRD)
		owner := before.send(http.MethodPost, "/apis/a.example.com/v1/namespaces/default/things", `{"apiVersion":"a.example.com/v1","kind":"Thing","metadata":{"name":"one","finalizers":["a/b"]},"spec":{"n":3}}`)
		before.send(http.MethodPost, "/api/v1/namespaces/default/configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"child","ownerReferences":[{"apiVersion":"a.example.com/v1","kind":"Thing","name":"one","uid":"`+owner.meta("uid")+`"}]}}`)
		before.send(http.MethodPost, "/apis/events.k8s.io/v1/namespaces/default/events", `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"e"},"note":"hello","eventTime":"2026-01-01T00:00:00.000000Z"}`)
		version := before.server.Version()
		var state bytes.Buffer
		if err := before.server.Save(&state); err != nil {
			t.Fatal(err)
		}

		after := newWire(t, full)
		if err := after.server.Resume(&state); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{
			"/apis/a.example.com/v1/namespaces/default/things/one", "/api/v1/namespaces/default/configmaps/child",
			"/apis/events.k8s.io/v1/namespaces/default/events/e", "/api/v1/namespaces/default", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.a.example.com",
		} {
			if was, is := before.send(http.MethodGet, path, ""), after.send(http.MethodGet, path, ""); was.code != http.StatusOK || was.text != is.text {
				t.Errorf("%s was\n%s\nand is\n%s", path, was.text, is.text)
			}
		}
		if got := after.server.Version(); got != version {
			t.Errorf("the version is %d, want %d", got, version)
		}
		next := after.put("default", "next")
		if next.meta("uid") == owner.meta("uid") || next.meta("uid") == before.send(http.MethodGet, "/api/v1/namespaces/default/configmaps/child", "").meta("uid") {
			t.Errorf("a new object has the uid of another one: %s", next.text)
		}
		if gone := after.send(http.MethodGet, "/api/v1/configmaps?watch=true&resourceVersion=1", ""); !strings.Contains(gone.text, "too old resource version") {
			t.Errorf("a watch from before the state reads %s", gone.text)
		}
		after.send(http.MethodDelete, "/apis/a.example.com/v1/namespaces/default/things/one", "")
		after.send(http.MethodPatch, "/apis/a.example.com/v1/namespaces/default/things/one", `{"metadata":{"finalizers":null}}`, "Content-Type", "application/merge-patch+json")
		time.Sleep(time.Second)
		if child := after.send(http.MethodGet, "/api/v1/namespaces/default/configmaps/child", ""); child.code != http.StatusNotFound {
			t.Errorf("the dependent of a deleted object is there: %s", child.text)
		}
	})
}

func TestAStateThatCannotBeReadIsAnError(t *testing.T) {
	const one = `{"version":1,"uids":1,"objects":1}` + "\n"
	tests := map[string]struct{ state, want string }{
		"it is empty":           {"", "resuming state: EOF"},
		"it is cut":             {one + `{"resource":"config`, "resuming state: reading object 1 of 1: unexpected EOF"},
		"it lacks an object":    {one, "resuming state: reading object 1 of 1: EOF"},
		"it has another object": {`{"version":1,"uids":1,"objects":0}` + "\n{}", "resuming state: it goes on after its 0 objects"},
		"a CRD is missing":      {one + `{"resource":"things.a.example.com","object":{"metadata":{"name":"one"}}}`, "resuming things.a.example.com one: its CRD is missing"},
		"a CRD is not complete": {one + `{"resource":"customresourcedefinitions.apiextensions.k8s.io","object":{"metadata":{"name":"a.b"}}}`, "resuming customresourcedefinitions.apiextensions.k8s.io a.b: the CRD's name must be"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := server.New(server.Settings{}).Resume(strings.NewReader(test.state)); err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}
