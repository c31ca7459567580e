// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/sandbox/server/openapi"
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
		return swagger{s.documents(), &s.published}, len(path) == 2
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
	d := all[i]
	out, _ := s.published.get(d.path(), d.hash, func() ([]byte, error) { return encoded(d.text()), nil })
	return out, true
}

// written is an OpenAPI document in the form that goes over the wire. The hash differs when the content does.
type written struct {
	path, hash string
	text       []byte
}

// published has the OpenAPI documents that were asked for, by their paths.
type published struct {
	mu        sync.Mutex
	documents map[string]*publication
}

// publication is the newest form of one document. Each has a lock of its own: encoding the document of version 2 takes
// seconds on a busy machine, and clients that want another one need not wait for it.
type publication struct {
	mu     sync.Mutex
	newest *written
}

// get returns a document, which is encoded once while its hash stays.
func (p *published) get(path, hash string, encode func() ([]byte, error)) (*written, error) {
	document := p.of(path)
	document.mu.Lock()
	defer document.mu.Unlock()
	if known := document.newest; known != nil && known.hash == hash {
		return known, nil
	}
	text, err := encode()
	if err != nil {
		return nil, err
	}
	document.newest = &written{path, hash, text}
	return document.newest, nil
}

func (p *published) of(path string) *publication {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.documents == nil {
		p.documents = map[string]*publication{}
	}
	if p.documents[path] == nil {
		p.documents[path] = &publication{}
	}
	return p.documents[path]
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
	schemas := d.schemas()
	return map[string]any{
		"openapi": "3.0.0", "info": info(), "paths": openapi.Paths(d.version, d.described(schemas)),
		"components": map[string]any{"schemas": schemas, "securitySchemes": map[string]any{"BearerToken": bearerToken()}},
	}
}

// bearerToken describes how clients say who they are.
func bearerToken() map[string]any {
	return map[string]any{"type": "apiKey", "in": "header", "name": "authorization", "description": "Bearer Token authentication"}
}

// info is the head of a document.
func info() map[string]any {
	return map[string]any{"title": "Kubernetes", "version": serverVersion().GitVersion}
}

// schemas returns the schemas of all resources. Those of the kinds say more than those of the Go types of subresources and
// answers. Of two kinds' with one name, that with more extensions says more.
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
	others := []any{metav1.APIResourceList{}, metav1.DeleteOptions{}, metav1.Patch{}, metav1.Status{}, metav1.WatchEvent{}}
	for _, r := range d.resources {
		if r.scale != nil {
			others = append(others, autoscalingv1.Scale{})
		}
		for _, special := range r.specials() {
			others = append(others, special.value())
		}
	}
	for name, s := range openapi.Components(others...) {
		if out[name] == nil {
			out[name] = s
		}
	}
	return out
}

// described returns the resources for their paths. Their schemas have the kinds that they describe.
func (d documented) described(schemas map[string]*spec.Schema) (out []openapi.Resource) {
	models := map[string]string{}
	for name, s := range schemas {
		for _, kind := range kindsOf(s) {
			models[kind] = name
		}
	}
	for _, r := range d.resources {
		kind := d.version.WithKind(r.kind)
		one := openapi.Resource{
			Kind: kind, Plural: r.plural, Namespaced: r.namespaced, Custom: r.custom, Collection: r.name() != namespaces(),
			Returned: r.returnsDeleted() && r.name() != namespaces(),
			Model:    models[kind.String()], List: models[kind.String()+"List"],
		}
		all := []string{"get", "put", "patch"}
		if r.status {
			one.Subresources = append(one.Subresources, openapi.Subresource{Name: "status", Kind: kind, Model: one.Model, Methods: all})
		}
		if r.scale != nil {
			one.Subresources = append(one.Subresources, openapi.Subresource{Name: "scale", Kind: scaleKind(), Model: openapi.Name(autoscalingv1.Scale{}), Methods: all})
		}
		for _, special := range r.specials() {
			one.Subresources = append(one.Subresources, openapi.Subresource{
				Name: special.name, Kind: schema.GroupVersionKind(*special.kind), Model: openapi.Name(special.value()), Methods: special.methods(),
			})
		}
		out = append(out, one)
	}
	return out
}

// kindsOf returns the kinds that a schema describes.
func kindsOf(s *spec.Schema) (out []string) {
	list, _ := s.Extensions["x-kubernetes-group-version-kind"].([]any)
	for _, item := range list {
		if kind, is := item.(map[string]any); is {
			out = append(out, schema.GroupVersionKind{Group: fmt.Sprint(kind["group"]), Version: fmt.Sprint(kind["version"]), Kind: fmt.Sprint(kind["kind"])}.String())
		}
	}
	return out
}
