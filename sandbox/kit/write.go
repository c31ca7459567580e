// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/handwerk-dev/handwerk/sandbox/server"
)

// Write is a write request of an operator.
type Write struct {
	// Verb is the verb in RBAC's form.
	Verb string
	// Resource is the plural name, with the subresource behind a slash, as in "foos/status".
	Resource string
	// Namespace and Name identify the object. For a name that the server generates, Name is its beginning.
	Namespace, Name string
	// Body is the body of the request.
	Body map[string]any
	// Code is the HTTP status of the response.
	Code int
	// At is when the response was there.
	At time.Time
}

// numbered is a write with the number of its request, by which the writes of a process are in order.
type numbered struct {
	Write

	number int64
}

// String formats it as in "patch foos/status default/web", followed by the code if the request was refused.
func (w Write) String() string {
	text := w.Verb + " " + w.Resource + " " + strings.TrimPrefix(w.Namespace+"/"+w.Name, "/")
	if w.Code >= 400 {
		text += ": " + strconv.Itoa(w.Code)
	}
	return text
}

// counts reports whether a request is a write that counts: part of the operator's work, and not an Event or a
// Lease.
func counts(r server.Request) bool {
	switch r.Resource.GroupResource().String() {
	case "events", "events.events.k8s.io", "leases.coordination.k8s.io":
		return false
	}
	return r.Writes()
}

func writeOf(r server.Request, code int, at time.Time) Write {
	w := Write{Verb: r.Verb, Resource: r.Resource.Resource, Namespace: r.Namespace, Name: r.Name, Body: r.Body, Code: code, At: at}
	if r.Subresource != "" {
		w.Resource += "/" + r.Subresource
	}
	if w.Name == "" {
		metadata, _ := r.Body["metadata"].(map[string]any)
		w.Name, _ = metadata["name"].(string)
		if base, _ := metadata["generateName"].(string); base != "" {
			w.Name = base // the server adds what no test expects
		}
	}
	return w
}

// Writes returns the process's write requests since the last call, in the order in which they took effect, without those for
// Events and Leases.
func (p *Process) Writes() (out []Write) {
	p.cluster.mu.Lock()
	defer p.cluster.mu.Unlock()
	slices.SortFunc(p.writes, func(a, b numbered) int { return cmp.Compare(a.number, b.number) })
	for _, w := range p.writes {
		out = append(out, w.Write)
	}
	p.writes = nil
	return out
}

// Writes returns the write requests of all processes since the last call, process by process; see [Process.Writes].
func (c *Cluster) Writes() []Write {
	var out []Write
	for _, p := range c.running() {
		out = append(out, p.Writes()...)
	}
	return out
}
