// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"net/http"
	"testing"

	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
)

// TestADocumentIsLoadedOnce holds that a client that knows the hash of an OpenAPI document need not load it again, until
// a CRD in it changes.
func TestADocumentIsLoadedOnce(t *testing.T) {
	w := newFoos(t)
	const path = "/openapi/v3/apis/example.com/v1"
	first := w.send(http.MethodGet, path, "")
	mark := first.header.Get("Etag")
	if first.code != http.StatusOK || mark == "" {
		t.Fatalf("the document: %d with the hash %q", first.code, mark)
	}
	hash := mark[1 : len(mark)-1]
	if out := w.send(http.MethodGet, path+"?hash="+hash, ""); out.header.Get("Cache-Control") != "public, immutable" || out.text != first.text {
		t.Errorf("by its hash: %d %v", out.code, out.header)
	}
	if out := w.send(http.MethodGet, path, "", "If-None-Match", mark); out.code != http.StatusNotModified || out.text != "" {
		t.Errorf("when the client has it: %d %s", out.code, out.text)
	}
	if out := w.send(http.MethodPatch, foosDefinition, `{"spec":{"names":{"categories":["all"]}}}`, "Content-Type", "application/merge-patch+json"); out.code != http.StatusOK {
		t.Fatal(out.text)
	}
	changed := w.send(http.MethodGet, path, "", "If-None-Match", mark)
	if changed.code != http.StatusOK || changed.header.Get("Etag") == mark {
		t.Errorf("after a change: %d with the hash %s", changed.code, changed.header.Get("Etag"))
	}
	old := w.send(http.MethodGet, path+"?hash="+hash, "")
	if want := path + "?hash=" + changed.header.Get("Etag")[1:len(mark)-1]; old.code != http.StatusMovedPermanently || old.header.Get("Location") != want {
		t.Errorf("by the old hash: %d to %s, want %s", old.code, old.header.Get("Location"), want)
	}
}

// BenchmarkDocument is the time of a request for the OpenAPI document of the built-in kinds of the core group.
func BenchmarkDocument(b *testing.B) {
	w := newWire(b, complete.Settings())
	for b.Loop() {
		if out := w.open(http.MethodGet, "/openapi/v3/api/v1", ""); out.StatusCode != http.StatusOK {
			b.Fatal(out.Status)
		}
	}
}
