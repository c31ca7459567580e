// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/handwerk-dev/handwerk/sandbox/server"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// anything has no schemas: the server is a full one that takes all objects.
type anything struct{}

func (anything) Builtin(schema.GroupVersionKind) server.Schema { return nil }

func (anything) Custom(*unstructured.Unstructured) (map[string]server.Schema, error) {
	return nil, nil //nolint:nilnil // no schemas and no error
}

func TestAFullServerSelectsByTheFieldsOfARealOne(t *testing.T) {
	w := newWire(t, server.Settings{Schemas: anything{}})
	selectable := strings.Replace(crd, `"subresources"`, `"selectableFields":[{"jsonPath":".spec.color"}],"subresources"`, 1)
	w.send(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", selectable)
	for _, name := range []string{"red", "blue"} {
		w.send(http.MethodPost, foos, `{"apiVersion":"example.com/v1","kind":"Foo","metadata":{"name":"`+name+`"},"spec":{"color":"`+name+`"}}`)
		w.send(http.MethodPost, "/api/v1/namespaces/default/pods", `{"metadata":{"name":"`+name+`"},"spec":{"nodeName":"`+name+`"}}`)
	}
	for _, path := range []string{foos + "?fieldSelector=spec.color%3Dred", "/api/v1/pods?fieldSelector=spec.nodeName!%3Dblue"} {
		if diff := cmp.Diff([]string{"red"}, w.send(http.MethodGet, path, "").names()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	w.refuses(map[string]refusal{
		"a field of a custom resource": {"GET " + foos + "?fieldSelector=spec.x%3D1", "", "", "400 field label not supported: spec.x"},
		"a field of a Pod":             {"GET /api/v1/pods?fieldSelector=spec.x%3D1", "", "", "400 field label not supported: spec.x"},
		"a field of a ConfigMap":       {"GET " + inDefault + "?watch=true&fieldSelector=spec.x%3D1", "", "", `400 "spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"`},
	})
}
