// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/sandbox/server"
)

// place is where an object is.
type place struct {
	resource        schema.GroupResource
	namespace, name string
}

// touched is an object that was written in the twin.
type touched struct {
	// before is the object in JSON before the first write; nil if it did not exist.
	before []byte
	// operator: the operator wrote it, and not only the cluster itself. Status: it wrote to its status.
	operator, status bool
	// sent is the last body with which the operator created or applied it.
	sent map[string]any
}

// recorder keeps the objects of the twin as they were before they were written.
type recorder struct {
	server *server.Server
	admin  *server.Client
	// wrote, if set, is called after each write of the operator and of the server itself.
	wrote func(place)

	mu      sync.Mutex
	on      bool
	touched map[place]*touched
	writes  int
	// rights are the rights that the operator's writes need, with the places of the objects.
	rights map[right]map[place]bool
}

// right is a verb on a resource.
type right struct {
	verb        string
	resource    schema.GroupResource
	subresource string
}

func newRecorder() *recorder { return &recorder{touched: map[place]*touched{}} }

// start starts the recording, or starts it anew. The present objects are the state before.
func (r *recorder) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on, r.touched, r.writes, r.rights = true, map[place]*touched{}, 0, map[right]map[place]bool{}
}

// count returns the number of the operator's writes so far.
func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writes
}

// isAside reports whether objects of a resource are no part of a plan: they say what processes do.
func isAside(resource schema.GroupResource) bool {
	switch resource.String() {
	case "events", "events.events.k8s.io", "leases.coordination.k8s.io":
		return true
	}
	return false
}

// before is called for each request of the operator before it reaches the server.
func (r *recorder) before(asked server.Request) error {
	if !asked.Writes() || isAside(asked.Resource.GroupResource()) {
		return nil
	}
	for _, at := range r.placesOf(asked) {
		r.note(at, asked)
	}
	return nil
}

// placesOf returns the places of the objects that a request writes.
func (r *recorder) placesOf(asked server.Request) []place {
	if asked.Name == "" && asked.Verb == "create" {
		metadata, _ := asked.Body["metadata"].(map[string]any)
		asked.Name, _ = metadata["name"].(string)
	}
	if asked.Name == "" { // the server makes up the name, or a collection is deleted
		return nil
	}
	return []place{{asked.Resource.GroupResource(), asked.Namespace, asked.Name}}
}

// note records an object that the operator is about to write.
func (r *recorder) note(at place, asked server.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.on {
		return
	}
	t := r.touched[at]
	if t == nil {
		t = &touched{before: r.read(at)}
		r.touched[at] = t
	}
	needs := right{asked.Verb, at.resource, asked.Subresource}
	if r.rights[needs] == nil {
		r.rights[needs] = map[place]bool{}
	}
	r.rights[needs][at] = true
	t.operator, t.status = true, t.status || asked.Subresource == "status"
	if asked.Body["kind"] != nil && asked.Subresource == "" && asked.Verb != "delete" {
		t.sent = asked.Body
	}
}

// after is called for each response to the operator.
func (r *recorder) after(_ context.Context, asked server.Request, code int) error {
	if asked.Writes() && !isAside(asked.Resource.GroupResource()) && code < http.StatusBadRequest {
		r.mu.Lock()
		r.writes++
		r.mu.Unlock()
		for _, at := range r.placesOf(asked) {
			r.tell(at)
		}
	}
	return nil
}

// tell tells of a write.
func (r *recorder) tell(at place) {
	if r.wrote != nil {
		r.wrote(at)
	}
}

// own is called after each write that the server makes by itself.
func (r *recorder) own(w server.OwnWrite) {
	at := place{w.Resource, w.Namespace, w.Name}
	defer r.tell(at)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.on || isAside(w.Resource) || r.touched[at] != nil {
		return
	}
	var before []byte
	if w.Before != nil {
		before, _ = json.Marshal(w.Before) // it came from JSON
	}
	r.touched[at] = &touched{before: before}
}

// read returns an object of the twin in JSON, or nil.
func (r *recorder) read(at place) []byte {
	served, found := r.server.Lookup(at.resource.WithVersion(""))
	if !found {
		return nil
	}
	h, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://twin"+pathOf(served.GVR, at), nil)
	if err != nil {
		return nil
	}
	response, err := r.admin.RoundTrip(h)
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return nil
	}
	return data
}

// pathOf returns the path of an object's URL.
func pathOf(gvr schema.GroupVersionResource, at place) string {
	path := "/api/" + gvr.Version
	if gvr.Group != "" {
		path = fmt.Sprintf("/apis/%s/%s", gvr.Group, gvr.Version)
	}
	if at.namespace != "" {
		path += "/namespaces/" + at.namespace
	}
	return path + "/" + gvr.Resource + "/" + at.name
}

// stop ends the recording: later writes do not count.
func (r *recorder) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on = false
}
