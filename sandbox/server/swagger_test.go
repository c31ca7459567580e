// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"
	"k8s.io/kube-openapi/pkg/util/proto"

	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
)

// TestOldClientsLearnTheFieldsOfAllKinds reads the document as kubectl did before 1.27.
func TestOldClientsLearnTheFieldsOfAllKinds(t *testing.T) {
	w := newWire(t, complete.Settings())
	if out := w.send(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd); out.code != http.StatusCreated {
		t.Fatal(out.text)
	}
	document, err := discovery.NewDiscoveryClientForConfigOrDie(w.config()).OpenAPISchema()
	if err != nil {
		t.Fatal(err)
	}
	models, err := proto.NewOpenAPIData(document)
	if err != nil {
		t.Fatal(err)
	}
	if kind, is := models.LookupModel("io.k8s.api.apps.v1.Deployment").(*proto.Kind); !is || kind.Fields["spec"] == nil {
		t.Errorf("a Deployment is %v", kind)
	}
	if _, is := models.LookupModel("com.example.v1.Foo").(*proto.Arbitrary); !is {
		t.Errorf("a Foo, which may have any field, is %v", models.LookupModel("com.example.v1.Foo"))
	}
	// By this, kubectl knows that it may ask for a dry run.
	const path = "/apis/example.com/v1/namespaces/{namespace}/foos/{name}"
	var options []string
	for _, each := range document.GetPaths().GetPath() {
		if each.Name == path {
			for _, p := range each.Value.GetPatch().GetParameters() {
				options = append(options, p.GetParameter().GetNonBodyParameter().GetQueryParameterSubSchema().GetName())
			}
		}
	}
	if !slices.Contains(options, "dryRun") {
		t.Errorf("a patch has the options %v", options)
	}
}

// TestTheOldDocumentIsLoadedOnce holds that a client that has the document need not load it again, until a CRD changes.
func TestTheOldDocumentIsLoadedOnce(t *testing.T) {
	w := newFoos(t)
	first := w.send(http.MethodGet, "/openapi/v2", "")
	mark := first.header.Get("Etag")
	if out := w.send(http.MethodGet, "/openapi/v2", "", "If-None-Match", mark); first.code != http.StatusOK || out.code != http.StatusNotModified || out.text != "" {
		t.Errorf("the document: %d, when the client has it: %d %s", first.code, out.code, out.text)
	}
	if out := w.send(http.MethodPatch, foosDefinition, `{"spec":{"names":{"categories":["all"]}}}`, "Content-Type", "application/merge-patch+json"); out.code != http.StatusOK {
		t.Fatal(out.text)
	}
	if out := w.send(http.MethodGet, "/openapi/v2", "", "If-None-Match", mark); out.code != http.StatusOK {
		t.Errorf("after a change: %d", out.code)
	}
	if strings.Contains(first.text, "#/components/") {
		t.Error("it refers to what a v2 document does not have")
	}
}

// BenchmarkSwagger is the time of a request for the OpenAPI v2 document in protobuf.
func BenchmarkSwagger(b *testing.B) {
	w := newWire(b, complete.Settings())
	for b.Loop() {
		if out := w.open(http.MethodGet, "/openapi/v2", "", "Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"); out.StatusCode != http.StatusOK {
			b.Fatal(out.Status)
		}
	}
}
