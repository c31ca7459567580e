// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/sandbox/server/openapi"
	"k8s.io/apimachinery/pkg/runtime"
)

// swagger is the one OpenAPI v2 document of a server, for clients that are older than those of v3.
type swagger struct {
	documents []documented
	published *published
}

// The media types of the document in protobuf. Old clients ask for the second, whose name breaks the
// rules of media types.
const (
	swaggerBinary = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	swaggerOld    = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
)

// response answers a request for the document, in JSON or in protobuf.
func (s swagger) response(h *http.Request) *http.Response {
	kind := swaggerKind(h.Header.Get("Accept"))
	if kind == "" {
		out := whole(h, http.StatusNotAcceptable, "", nil)
		out.Header.Del("Content-Type")
		return out
	}
	var parts []string
	for _, each := range s.documents {
		parts = append(parts, each.hash)
	}
	hash, out := hashed(parts...), (*http.Response)(nil)
	mark := strconv.Quote(hash)
	if strings.Contains(h.Header.Get("If-None-Match"), mark) {
		out = whole(h, http.StatusNotModified, "", nil)
		out.Header.Del("Content-Type")
	} else {
		document, err := s.published.get("v2 "+kind, hash, func() ([]byte, error) { return s.encoded(kind) })
		if err != nil {
			return failure(h, err)
		}
		out = whole(h, http.StatusOK, kind, document.text)
	}
	out.Header.Set("Etag", mark)
	out.Header.Set("Vary", "Accept")
	return out
}

// swaggerKind returns the media type in which a client likes the document best; empty means none.
func swaggerKind(accept string) string {
	if accept == "" {
		return runtime.ContentTypeJSON
	}
	for part := range strings.SplitSeq(accept, ",") { // a media type with an @ cannot be parsed
		switch media, _, _ := strings.Cut(strings.TrimSpace(part), ";"); media {
		case runtime.ContentTypeJSON, "application/*", "*/*":
			return runtime.ContentTypeJSON
		case swaggerBinary, swaggerOld:
			return swaggerBinary
		}
	}
	return ""
}

// encoded returns the document in a media type.
func (s swagger) encoded(kind string) ([]byte, error) {
	text := encoded(s.text())
	if kind == swaggerBinary {
		return openapi.Binary(text)
	}
	return text, nil
}

// text returns the document.
func (s swagger) text() map[string]any {
	paths, schemas := map[string]any{}, map[string]*spec.Schema{}
	for _, each := range s.documents {
		known := each.schemas()
		maps.Copy(paths, openapi.V2Paths(openapi.Paths(each.version, each.described(known))))
		for name, schema := range known {
			if old := schemas[name]; old == nil || len(old.Extensions) < len(schema.Extensions) {
				schemas[name] = schema
			}
		}
	}
	for _, name := range slices.Collect(maps.Keys(schemas)) {
		schemas[name] = openapi.V2(schemas[name])
	}
	return map[string]any{"swagger": "2.0", "info": info(), "paths": paths, "definitions": schemas}
}
