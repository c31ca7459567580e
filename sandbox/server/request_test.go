// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/sandbox/server"
)

const foos = "/apis/example.com/v1/namespaces/default/foos"

// crd defines Foos.
const crd = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"foos.example.com"},
	"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"foos","singular":"foo","kind":"Foo","listKind":"FooList","shortNames":["fo"],"categories":["all","mine"]},
	"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}},
	"subresources":{"status":{}}}]}}`

// newFoos returns a server with a Foo and a ConfigMap, each of the name a.
func newFoos(t *testing.T) wire {
	t.Helper()
	w := newWire(t, server.Settings{})
	w.put("default", "a")
	for path, body := range map[string]string{
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions": crd,
	} {
		if out := w.send(http.MethodPost, path, body); out.code != http.StatusCreated {
			t.Fatal(out.text)
		}
	}
	if out := w.send(http.MethodPost, foos, `{"apiVersion":"example.com/v1","kind":"Foo","metadata":{"name":"a"},"spec":{"x":1}}`); out.code != http.StatusCreated {
		t.Fatal(out.text)
	}
	return w
}

// refusal is a request with the code and the message of its answer. They are those of a real server.
type refusal struct{ request, body, kind, want string }

func (w wire) refuses(cases map[string]refusal) {
	w.t.Helper()
	for name, c := range cases {
		method, path, _ := strings.Cut(c.request, " ")
		headers := []string{}
		if c.kind != "" {
			headers = []string{"Content-Type", c.kind}
		}
		out := w.send(method, path, c.body, headers...)
		if got := fmt.Sprint(out.code, " ", out.message()); got != c.want {
			w.t.Errorf("%s\n  got  %s\n  want %s", name, got, c.want)
		}
	}
}

func TestObjectsThatTheServerRefuses(t *testing.T) {
	w := newFoos(t)
	post, postFoo := "POST "+inDefault, "POST "+foos
	w.refuses(map[string]refusal{
		"another kind":         {post, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"}}`, "", `400 Pod in version "v1" cannot be handled as a ConfigMap: converting (v1.Pod) to (core.ConfigMap): unknown conversion`},
		"another custom kind":  {postFoo, `{"apiVersion":"example.com/v1","kind":"Bar","metadata":{"name":"b"}}`, "", `422 Bar.example.com "b" is invalid: kind: Invalid value: "Bar": must be Foo`},
		"no kind":              {postFoo, `{"metadata":{"name":"b"}}`, "", `400 the object provided is unrecognized (must be of type Foo): Object 'Kind' is missing in '{"metadata":{"name":"b"}}' ({"metadata":{"name":"b"}})`},
		"another version":      {postFoo, `{"apiVersion":"example.com/v2","kind":"Foo","metadata":{"name":"b"}}`, "", `400 the API version in the data (example.com/v2) does not match the expected API version (example.com/v1)`},
		"no JSON":              {post, `{bad`, "", `400 the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: invalid character 'b' looking for beginning of object key string ({bad)`},
		"no body":              {post, ``, "", `400 the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)`},
		"a list":               {post, `[]`, "", `400 the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } (5b5d)`},
		"no protobuf":          {post, `k8s`, "application/vnd.kubernetes.protobuf", `400 the object provided is unrecognized (must be of type ConfigMap): provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] (6b3873)`},
		"custom protobuf":      {postFoo, `k8s`, "application/vnd.kubernetes.protobuf", `415 the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf`},
		"CBOR":                 {post, `k8s`, "application/cbor", `415 the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf`},
		"too much":             {post, strings.Repeat(" ", 3<<20+1), "", `413 Request entity too large: limit is 3145728`},
		"no name":              {post, `{"metadata":{}}`, "", `422 ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required`},
		"another namespace":    {post, `{"metadata":{"name":"c","namespace":"other"}}`, "", `400 the namespace of the provided object does not match the namespace sent on the request`},
		"a version":            {post, `{"metadata":{"name":"c","resourceVersion":"7"}}`, "", `500 resourceVersion should not be set on objects to be created`},
		"an update's name":     {"PUT " + inDefault + "/a", `{"metadata":{"name":"b"}}`, "", `400 the name of the object (b) does not match the name on the URL (a)`},
		"no name in an update": {"PUT " + inDefault + "/a", `{"metadata":{}}`, "", `400 the name of the object (a based on URL) was undeterminable: name must be provided`},
		"an update's version":  {"PUT " + inDefault + "/a", `{"metadata":{"name":"a","resourceVersion":"1"}}`, "", `409 Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again`},
		"an unknown object":    {"PUT " + inDefault + "/zzz", `{"metadata":{"name":"zzz"}}`, "", `404 configmaps "zzz" not found`},
		"a generated name":     {post, `{"metadata":{"name":"a","generateName":"a-"}}`, "", `409 configmaps "a" already exists, the server was not able to generate a unique name for the object`},
		"a wrong version":      {post, `{"apiVersion":"a/b/c","metadata":{"name":"b"}}`, "", `400 the object provided is unrecognized (must be of type ConfigMap): unexpected GroupVersion string: a/b/c ({"apiVersion":"a/b/c","metadat ...)`},
		"no custom version":    {postFoo, `{"kind":"Foo","metadata":{"name":"b"}}`, "", `400 the API version in the data () does not match the expected API version (example.com/v1)`},
		"a name in a POST":     {post + "/a", `{}`, "", `405 the server does not allow this method on the requested resource`},
		"no name in a PUT":     {"PUT " + inDefault, `{}`, "", `405 the server does not allow this method on the requested resource`},
		"a TRACE":              {"TRACE " + inDefault, ``, "", `405 the server does not allow this method on the requested resource`},
		"an unknown dry run":   {post + "?dryRun=x", `{"metadata":{"name":"b"}}`, "", `422 CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["x"]: supported values: "All"`},
		"an unknown resource":  {"GET /api/v1/nopes", ``, "", `404 the server could not find the requested resource`},
		"an unknown version":   {"GET /api/v2/pods", ``, "", `404 the server could not find the requested resource`},
		"no such subresource":  {"GET " + inDefault + "/a/status", ``, "", `404 the server could not find the requested resource`},
		"no such custom one":   {"GET " + foos + "/a/other", ``, "", `404 foos.example.com "a" not found`},
		"a status's deletion":  {"DELETE " + foos + "/a/status", ``, "", `405 delete is not supported on resources of kind "foos.example.com"`},
		"a bad label selector": {"GET " + inDefault + "?labelSelector=a=b=c", ``, "", `400 found '=', expected: ',' or 'end of string'`},
		"a future version":     {"GET " + inDefault + "/a?resourceVersion=99", ``, "", `504 Timeout: Too large resource version: 99, current: 6`},
	})
	if out := w.send(http.MethodGet, inDefault, "", "Accept", "application/vnd.kubernetes.protobuf"); out.code != http.StatusNotAcceptable {
		t.Errorf("a client that takes protobuf alone gets %d %s", out.code, out.text)
	}
	if out := w.send(http.MethodGet, inDefault, "", "Accept", "application/vnd.kubernetes.protobuf, application/json"); out.code != http.StatusOK {
		t.Errorf("a client that takes JSON, too, gets %d %s", out.code, out.text)
	}
}

func TestObjectsThatTheServerTakes(t *testing.T) {
	w := newFoos(t)
	for name, c := range map[string]struct{ body, kind string }{
		"a kind that is left out": {`{"metadata":{"name":"b"}}`, "application/json"},
		"an object in YAML":       {"metadata:\n  name: c\ndata:\n  x: y\n", "application/yaml"},
		"a charset":               {`{"metadata":{"name":"d"}}`, "application/json; charset=utf-8"},
		"a generated name":        {`{"metadata":{"generateName":"e-"}}`, "application/json"},
	} {
		out := w.send(http.MethodPost, inDefault, c.body, "Content-Type", c.kind)
		if out.code != http.StatusCreated || out.json["kind"] != "ConfigMap" || out.json["apiVersion"] != "v1" || out.meta("namespace") != "default" {
			t.Errorf("%s: %d %s", name, out.code, out.text)
		}
	}
	if n := len(w.send(http.MethodGet, inDefault, "").names()); n != 5 {
		t.Errorf("%d objects", n)
	}
}
