// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
)

// TestSpansReachACollector holds what an OpenTelemetry collector gets at the end of a run: the spans with their parents, failures,
// attributes, and the headers and the service of the variables.
func TestSpansReachACollector(t *testing.T) {
	type message struct {
		ResourceSpans []struct {
			Resource   struct{ Attributes []attribute }
			ScopeSpans []struct{ Spans []span }
		}
	}
	var got message
	var path, key string
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		path, key = r.URL.Path, r.Header.Get("Api-Key")
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
	}))
	defer collector.Close()
	e, err := newExporter([]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL + "/", "OTEL_EXPORTER_OTLP_HEADERS=api-key=a%20b", "OTEL_SERVICE_NAME=foo",
	}, "operator", logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	err = e.around(func(ctx context.Context) error {
		outer := e.Start(ctx, "reconcile", "name", "web")
		inner := e.Start(outer, "PATCH", "http.request.method", "PATCH")
		e.End(inner, errors.New("no answer"))
		e.End(outer, nil)
		return nil
	})(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if path != "/v1/traces" || key != "a b" {
		t.Errorf("the request goes to %s with the key %q", path, key)
	}
	spans := got.ResourceSpans[0].ScopeSpans[0].Spans
	inner, outer := spans[0], spans[1]
	if len(inner.TraceID) != 32 || len(inner.SpanID) != 16 || inner.TraceID != outer.TraceID || inner.Parent != outer.SpanID || outer.Parent != "" {
		t.Errorf("the spans do not belong together: %+v", spans)
	}
	if inner.Start < outer.Start || inner.End > outer.End {
		t.Errorf("the times do not enclose each other: %+v", spans)
	}
	for i := range spans {
		spans[i].TraceID, spans[i].SpanID, spans[i].Parent, spans[i].Start, spans[i].End = "", "", "", "", ""
	}
	want := []span{
		{Name: "PATCH", Kind: kindClient, Attributes: []attribute{attributeOf("http.request.method", "PATCH")}, Status: spanStatus{codeError, "no answer"}},
		{Name: "reconcile", Kind: kindInternal, Attributes: []attribute{attributeOf("name", "web")}},
	}
	if diff := cmp.Diff(want, spans); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	if !slices.Contains(got.ResourceSpans[0].Resource.Attributes, attributeOf("service.name", "foo")) {
		t.Errorf("the resource is %v", got.ResourceSpans[0].Resource)
	}
}

// TestVariablesOfTracing holds when spans are sent, and what is wrong with variables.
func TestVariablesOfTracing(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT="
	tests := map[string]struct {
		env       []string
		url, says string
	}{
		"no endpoint":                   {nil, "", ""},
		"an endpoint":                   {[]string{endpoint + "http://collector:4318"}, "http://collector:4318/v1/traces", ""},
		"an endpoint of traces alone":   {[]string{endpoint + "http://a", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://b/x"}, "http://b/x", ""},
		"the SDK is disabled":           {[]string{endpoint + "http://a", "OTEL_SDK_DISABLED=true"}, "", ""},
		"an address without a scheme":   {[]string{endpoint + "collector:4318"}, "", `"collector:4318/v1/traces" is not a URL with http or https`},
		"headers that are not in pairs": {[]string{endpoint + "http://a", "OTEL_EXPORTER_OTLP_HEADERS=secret"}, "", "reading OTEL_EXPORTER_OTLP_HEADERS: want key=value pairs"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e, err := newExporter(tt.env, "foo", logr.Discard())
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("it says %v", err)
			}
			if (e != nil) != (tt.url != "") || e != nil && e.url != tt.url {
				t.Errorf("it sends to %v, want %q", e, tt.url)
			}
		})
	}
}
