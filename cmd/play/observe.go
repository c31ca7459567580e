// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json" // keeps whole numbers whole
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
	"github.com/handwerk-dev/handwerk/sandbox/server"
)

// write is a write that a client has made.
type write struct {
	server.Request
	// by is the handler, or the client.
	by string
	// code is that of the response, and message what it says of a refusal.
	code    int
	message string
	// before and after are the object before and after the write; nil if it does not exist then.
	before, after map[string]any
}

// observer is a transport that shows the writes of a client.
type observer struct {
	next   http.RoundTripper
	client string
	// by names who made a request, if it is not the client.
	by    func(*http.Request) string
	lines *lines
	// says returns the line of a write.
	says func(write) line
}

// handlerOf names the handler that made a request.
func handlerOf(h *http.Request) string { return transport.Handler(h.Context()) }

// RoundTrip sends a request.
func (o *observer) RoundTrip(h *http.Request) (*http.Response, error) {
	asked, found := shown(h)
	if !found {
		return o.next.RoundTrip(h)
	}
	var said line
	end := o.lines.begin()
	defer func() { end(said) }()
	h = taken(h, &asked)
	w := write{Request: asked, by: o.client, before: look(o.next, h, asked)}
	if o.by != nil {
		if by := o.by(h); by != "" {
			w.by = by
		}
	}
	out, err := o.next.RoundTrip(h)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(out.Body)
	_ = out.Body.Close()
	if err != nil {
		return nil, err
	}
	out.Body = io.NopCloser(bytes.NewReader(data))
	w.answered(out.StatusCode, data, func() map[string]any { return look(o.next, h, w.Request) })
	said = o.says(w)
	return out, nil
}

// WrappedRoundTripper lets client-go find the connections underneath.
func (o *observer) WrappedRoundTripper() http.RoundTripper { return o.next }

// outside is a handler that shows the writes of clients in other processes.
type outside struct {
	next   http.Handler
	server http.RoundTripper
	lines  *lines
}

// ServeHTTP answers a request.
func (o *outside) ServeHTTP(to http.ResponseWriter, h *http.Request) {
	asked, found := shown(h)
	if !found {
		o.next.ServeHTTP(to, h)
		return
	}
	var said line
	end := o.lines.begin()
	defer func() { end(said) }()
	client, _, _ := strings.Cut(h.UserAgent(), "/")
	h = taken(h, &asked)
	w := write{Request: asked, by: client, before: look(o.server, h, asked)}
	copied := &recorder{ResponseWriter: to, code: http.StatusOK}
	o.next.ServeHTTP(copied, h)
	w.answered(copied.code, copied.body.Bytes(), func() map[string]any { return look(o.server, h, w.Request) })
	said = o.lines.wrote(w)
}

// taken takes in the body of a request, and returns the request, whose body can be read once more.
func taken(h *http.Request, asked *server.Request) *http.Request {
	if h.Body == nil {
		return h
	}
	data, err := io.ReadAll(h.Body)
	out := h.WithContext(h.Context())
	out.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(data), ending{err}), h.Body}
	asked.Body = fieldsOf(data)
	metadata, _ := asked.Body["metadata"].(map[string]any)
	if name, _ := metadata["name"].(string); asked.Name == "" && asked.Verb == "create" {
		asked.Name = name
	}
	return out
}

// fieldsOf returns an object in JSON, or in the binary form of built-in kinds, which some commands of kubectl send. It returns nil for a
// body in another form.
func fieldsOf(body []byte) (out map[string]any) {
	if utiljson.Unmarshal(body, &out) == nil {
		return out
	}
	o, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil
	}
	out, err = runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil
	}
	return out
}

// ending is the end of a body that has been read: an error, or nothing more.
type ending struct{ err error }

// Read returns the end.
func (e ending) Read([]byte) (int, error) { return 0, cmp.Or(e.err, io.EOF) }

// recorder keeps a copy of a response.
type recorder struct {
	http.ResponseWriter
	code int
	body bytes.Buffer
}

// WriteHeader sends the code.
func (r *recorder) WriteHeader(code int) {
	r.code = code
	r.ResponseWriter.WriteHeader(code)
}

// Write sends a part of the body.
func (r *recorder) Write(data []byte) (int, error) {
	r.body.Write(data)
	return r.ResponseWriter.Write(data)
}

// answered takes in the response to a write.
func (w *write) answered(code int, body []byte, look func() map[string]any) {
	w.code = code
	o := fieldsOf(body) // a response in another form says no more than its code
	metadata, _ := o["metadata"].(map[string]any)
	if name, _ := metadata["name"].(string); w.Name == "" && w.Verb == "create" {
		w.Name = name
	}
	switch whole := w.Subresource == "" || w.Subresource == "status"; {
	case code >= http.StatusBadRequest:
		w.message, _ = o["message"].(string)
	case whole && w.Verb != "delete" && o["kind"] != "PartialObjectMetadata" && o["kind"] != "Status":
		w.after = o
	default:
		w.after = look()
	}
	if w.Verb == "delete" && at(w.before, "metadata", "uid") != at(w.after, "metadata", "uid") {
		w.after = nil // it was made again meanwhile
	}
}

// look reads the object that a request is about, with the sender's rights. It returns nil if that fails.
func look(through http.RoundTripper, h *http.Request, asked server.Request) map[string]any {
	if asked.Name == "" {
		return nil
	}
	get, err := http.NewRequestWithContext(h.Context(), http.MethodGet, pathOf(h, asked), nil)
	if err != nil {
		return nil
	}
	get.Header = h.Header.Clone()
	get.Header.Set("Accept", "application/json")
	get.Header.Del("Content-Type")
	out, err := through.RoundTrip(get)
	if err != nil {
		return nil
	}
	defer out.Body.Close()
	var o map[string]any
	body, err := io.ReadAll(out.Body)
	if err != nil || out.StatusCode != http.StatusOK || utiljson.Unmarshal(body, &o) != nil {
		return nil
	}
	return o
}

// pathOf returns the URL of the object that a request is about.
func pathOf(h *http.Request, asked server.Request) string {
	at := *h.URL
	at.RawQuery = ""
	at.Path = strings.TrimSuffix(strings.TrimSuffix(at.Path, "/"), "/"+asked.Subresource)
	if !strings.HasSuffix(at.Path, "/"+asked.Name) { // it is that of a create
		at.Path += "/" + asked.Name
	}
	at.RawPath = ""
	return at.String()
}

// unseen are resources in which clients write down what is not about objects.
var unseen = []schema.GroupResource{{Resource: "events"}, {Group: "events.k8s.io", Resource: "events"}, {Group: "coordination.k8s.io", Resource: "leases"}}

// shown returns what a request asks for, and reports whether it has a line: if it writes.
func shown(h *http.Request) (server.Request, bool) {
	r, found := server.Asks(h)
	if !found || !r.Writes() || r.Verb == "" || h.URL.Query().Has("dryRun") {
		return r, false
	}
	review := r.Resource.Group == "authorization.k8s.io" || r.Resource.Group == "authentication.k8s.io" || r.Subresource == "token"
	return r, !review && !slices.Contains(unseen, r.Resource.GroupResource())
}
