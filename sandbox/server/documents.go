// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// documented are the resources of one version of a group, for its OpenAPI document.
type documented struct {
	version   schema.GroupVersion
	resources []resource
	forms     []Schema // by resource; nil for one without a schema
	hash      string
}

// openapi answers a request for a document, in the form of one of two versions of OpenAPI.
func (s *Server) openapi(path []string) (body any, found bool) {
	switch path[1] {
	case "v3":
		return s.document(path)
	case "v2":
		return swagger(s.documents()), len(path) == 2
	}
	return nil, false
}

// document answers a request below /openapi/v3: for the list of documents, or for that of a version of a group. Schemas
// are long and their making takes milliseconds, so that is done without the server's lock.
func (s *Server) document(path []string) (body any, found bool) {
	all := s.documents()
	if len(path) == 2 {
		paths := map[string]any{}
		for _, each := range all {
			paths[each.path()] = map[string]any{"serverRelativeURL": "/openapi/v3/" + each.path() + "?hash=" + each.hash}
		}
		return map[string]any{"paths": paths}, true
	}
	i := slices.IndexFunc(all, func(each documented) bool { return each.path() == strings.Join(path[2:], "/") })
	if i < 0 {
		return nil, false
	}
	return s.written(all[i]), true
}

// written is an OpenAPI document in JSON. The hash differs when the content does.
type written struct {
	path, hash string
	text       []byte
}

// published has the OpenAPI documents that were asked for, by their paths.
type published struct {
	mu        sync.Mutex
	documents map[string]*written
}

// written returns a document, which is encoded once while its content stays.
func (s *Server) written(d documented) *written {
	s.published.mu.Lock()
	defer s.published.mu.Unlock()
	if known := s.published.documents[d.path()]; known != nil && known.hash == d.hash {
		return known
	}
	if s.published.documents == nil {
		s.published.documents = map[string]*written{}
	}
	out := &written{path: d.path(), hash: d.hash, text: encoded(d.text())}
	s.published.documents[d.path()] = out
	return out
}

// response answers a request for the document as a real server does: a client that knows its hash need not load it again.
func (w *written) response(h *http.Request) *http.Response {
	mark, asked := strconv.Quote(w.hash), h.URL.Query().Get("hash")
	var out *http.Response
	switch {
	case asked != "" && asked != w.hash:
		out = respond(h, http.StatusMovedPermanently, "text/html; charset=utf-8", http.NoBody, 0)
		out.Header.Set("Location", "/openapi/v3/"+w.path+"?hash="+w.hash)
	case strings.Contains(h.Header.Get("If-None-Match"), mark):
		out = respond(h, http.StatusNotModified, "", http.NoBody, 0)
		out.Header.Del("Content-Type")
	default:
		out = respond(h, http.StatusOK, "application/json", io.NopCloser(bytes.NewReader(w.text)), int64(len(w.text)))
	}
	out.Header.Set("Etag", mark)
	if asked == w.hash {
		out.Header.Set("Vary", "Accept")
		out.Header.Set("Cache-Control", "public, immutable")
	}
	return out
}

// documents returns what there is to document, in a fixed order.
func (s *Server) documents() (out []documented) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.sorted() {
		if t.withdrawn || s.broken[t.group] {
			continue
		}
		for _, version := range t.versions {
			gv := schema.GroupVersion{Group: t.group, Version: version}
			i := slices.IndexFunc(out, func(each documented) bool { return each.version == gv })
			if i < 0 {
				i = len(out)
				out = append(out, documented{version: gv, hash: hashed(gv.String())})
			}
			out[i].resources = append(out[i].resources, t.resource)
			out[i].forms = append(out[i].forms, s.schemaOf(t, version))
			out[i].hash = hashed(out[i].hash, t.plural)
			if crd := s.crdOf(t); crd != nil {
				out[i].hash = hashed(out[i].hash, string(crd.GetUID()), strconv.FormatInt(crd.GetGeneration(), 10))
			}
		}
	}
	return out
}

// hashed returns a short text that differs when one of the parts does.
func hashed(parts ...string) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(strings.Join(parts, "/"))) // never fails
	return fmt.Sprintf("%X", sum.Sum64())
}

// path is that of the version below the root, such as apis/apps/v1.
func (d documented) path() string {
	if d.version.Group == "" {
		return "api/" + d.version.Version
	}
	return "apis/" + d.version.String()
}

// text returns the OpenAPI document.
func (d documented) text() map[string]any {
	paths := d.allPaths(func(name string) map[string]any {
		return map[string]any{"name": name, "in": "query", "schema": map[string]any{"type": "string", "uniqueItems": true}}
	})
	return map[string]any{"openapi": "3.0.0", "info": info(), "paths": paths, "components": map[string]any{"schemas": d.schemas()}}
}

// info is the head of a document.
func info() map[string]any {
	return map[string]any{"title": "Kubernetes", "version": serverVersion()["gitVersion"]}
}

// schemas returns the schemas of all resources. Of two with one name, that with more extensions says more.
func (d documented) schemas() map[string]*spec.Schema {
	out := map[string]*spec.Schema{}
	for _, each := range d.forms {
		if form, is := each.(Documented); is {
			for name, s := range form.Components() {
				if old := out[name]; old == nil || len(old.Extensions) < len(s.Extensions) {
					out[name] = s
				}
			}
		}
	}
	return out
}

// allPaths returns the paths of all resources with their operations; option returns one of an operation's options.
func (d documented) allPaths(option func(name string) map[string]any) map[string]any {
	out := map[string]any{}
	for _, r := range d.resources {
		maps.Copy(out, d.paths(r, option))
	}
	return out
}

// paths returns the paths of a resource with their operations, by which clients find its kind and its options.
func (d documented) paths(r resource, option func(name string) map[string]any) map[string]any {
	root := "/" + d.path() + "/"
	if r.namespaced {
		root += "namespaces/{namespace}/"
	}
	kind := map[string]any{"group": r.group, "version": d.version.Version, "kind": r.kind}
	operation := func(action string, options ...string) map[string]any {
		parameters := []any{}
		for _, name := range options {
			parameters = append(parameters, option(name))
		}
		return map[string]any{
			"x-kubernetes-action": action, "x-kubernetes-group-version-kind": kind, "parameters": parameters,
			"responses": map[string]any{"200": map[string]any{"description": "OK"}},
		}
	}
	writing := []string{"dryRun", "fieldManager", "fieldValidation"}
	one := map[string]any{
		"get": operation("get"), "put": operation("put", writing...),
		"patch": operation("patch", append(writing, "force")...), "delete": operation("delete", "dryRun", "propagationPolicy"),
	}
	out := map[string]any{
		root + r.plural: map[string]any{
			"get": operation("list", "labelSelector", "fieldSelector", "limit", "continue"), "post": operation("post", writing...),
		},
		root + r.plural + "/{name}": one,
	}
	if r.status {
		out[root+r.plural+"/{name}/status"] = map[string]any{
			"get": operation("get"), "put": operation("put", writing...), "patch": operation("patch", append(writing, "force")...),
		}
	}
	return out
}
