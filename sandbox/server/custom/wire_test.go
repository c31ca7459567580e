// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package custom_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/server/custom"
)

// schemas are those of CRDs and custom resources alone.
type schemas struct{}

func (schemas) Builtin(kind schema.GroupVersionKind) server.Schema {
	if kind.Kind == "CustomResourceDefinition" {
		return custom.Definition()
	}
	return nil
}

func (schemas) Custom(crd *unstructured.Unstructured) (map[string]server.Schema, error) {
	return custom.Schemas(crd)
}

// wire is a server as its clients see it.
type wire struct {
	t    testing.TB
	link http.RoundTripper
}

func newWire(t testing.TB) wire {
	return wire{t, server.New(server.Settings{Schemas: schemas{}}).Admin()}
}

// answer is a response that has been read.
type answer struct {
	code     int
	text     string
	object   map[string]any
	warnings []string
}

// failure is the code and the message of a Status, or nothing for another object.
func (a answer) failure() string {
	if a.object["kind"] != "Status" || a.object["status"] == "Success" {
		return ""
	}
	return fmt.Sprint(a.code, " ", a.object["message"])
}

// json is a part of the object in JSON.
func (a answer) json(path ...string) string {
	value, _, _ := unstructured.NestedFieldNoCopy(a.object, path...)
	out, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// send sends a request with a body in YAML. The type of the body is that of the last header, JSON without one.
func (w wire) send(method, path, body string, contentType ...string) answer {
	w.t.Helper()
	data, err := yaml.YAMLToJSON([]byte(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, "http://cluster"+path, strings.NewReader(string(data)))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("User-Agent", "wire/1")
	r.Header.Set("Content-Type", strings.Join(append([]string{"application/json"}, contentType...)[len(contentType):], ""))
	response, err := w.link.RoundTrip(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	out := answer{code: response.StatusCode, text: string(text)}
	for _, each := range response.Header.Values("Warning") {
		text, err := strconv.Unquote(strings.TrimPrefix(each, "299 - "))
		if err != nil {
			w.t.Fatal(err)
		}
		out.warnings = append(out.warnings, text)
	}
	if err := json.Unmarshal(text, &out.object); err != nil {
		w.t.Fatalf("%s %s: %v: %s", method, path, err, text)
	}
	return out
}

// ok is send for a request that succeeds.
func (w wire) ok(method, path, body string, contentType ...string) answer {
	w.t.Helper()
	out := w.send(method, path, body, contentType...)
	if failure := out.failure(); failure != "" {
		w.t.Fatalf("%s %s: %s", method, path, failure)
	}
	return out
}

const (
	crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	foos = "/apis/example.com/v1/namespaces/default/foos"
)

// crd returns a CRD with the spec of a version in YAML, as a body.
func crd(version string) string { return crdOf("name: foos.example.com", version) }

// crdOf is crd with metadata.
func crdOf(metadata, version string) string {
	return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {` + metadata + `}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: foos, singular: foo, kind: Foo, listKind: FooList}
  versions:
  - name: v1
    served: true
    storage: true
` + indent(version, "    ")
}

// indent puts a text before each line.
func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+by)
}

// foo returns an object with further fields in YAML, as a body.
func foo(fields string) string {
	out := "{apiVersion: example.com/v1, kind: Foo, metadata: {name: a}}"
	if fields == "" {
		return out
	}
	head, rest := map[string]any{}, map[string]any{}
	for text, into := range map[string]*map[string]any{out: &head, fields: &rest} {
		if err := yaml.Unmarshal([]byte(text), into); err != nil {
			panic(err)
		}
	}
	maps.Copy(head, rest)
	body, err := json.Marshal(head)
	if err != nil {
		panic(err)
	}
	return string(body)
}
