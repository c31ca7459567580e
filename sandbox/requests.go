// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/sandbox/server"
)

// Request is a request for objects that a client has sent.
type Request struct {
	// Verb is that of RBAC, as in get, list, watch, create, update, patch, delete and deletecollection.
	Verb string
	// Resource is the resource, and Subresource a subresource, such as "status".
	Resource    schema.GroupVersionResource
	Subresource string
	// Namespace and Name are those of the object. Both may be empty; a create has no name.
	Namespace, Name string
	// UserAgent is the client's.
	UserAgent string
	// Code is the HTTP status of the response; 200 for a watch that goes on.
	Code int

	number int64
}

// Fault makes requests fail. Empty fields match everything.
type Fault struct {
	// Verb is that of RBAC, as in [Request].
	Verb string `json:"verb,omitempty"`
	// Resource is a resource as kubectl takes it, as in "deployments" or "deployments.apps", and Subresource a subresource.
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	// Namespace and Name are those of the object.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Code is the HTTP status of the response. 0 means 500.
	Code int `json:"code,omitempty"`
	// Times is how many requests fail. 0 means all, until the fault is ended.
	Times int `json:"times,omitempty"`
}

// isLike reports whether two faults are about the same requests.
func (f Fault) isLike(other Fault) bool {
	f.Code, f.Times = other.Code, other.Times
	return f == other
}

// matches reports whether a request is one that fails.
func (f Fault) matches(r server.Request) bool {
	is := func(want, has string) bool { return want == "" || want == has }
	return is(f.Verb, r.Verb) && is(f.Resource, r.Resource.GroupResource().String()) && is(f.Subresource, r.Subresource) &&
		is(f.Namespace, r.Namespace) && is(f.Name, r.Name)
}

// most is how many requests are kept.
const most = 10_000

// recorder records the requests of clients, and lets some fail.
type recorder struct {
	// on: requests are recorded.
	on bool

	mu       sync.Mutex
	requests []Request
	faults   []*Fault
}

// seen returns a connection whose requests are recorded, and fail as they are told to. It ends with the sandbox.
func (s *Sandbox) seen(c *server.Client) *server.Client {
	out := c.Through(s.requests.before, s.requests.after)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clients = append(s.clients, out); s.stopped {
		out.Sever()
	}
	return out
}

// sever ends the connections of clients: a client that outlives the sandbox gets the errors that it gets from a server that is
// gone.
func (s *Sandbox) sever() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for _, c := range s.clients {
		c.Sever()
	}
}

// before returns the error with which a request fails, if it is to.
func (r *recorder) before(asked server.Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, f := range r.faults {
		if !f.matches(asked) {
			continue
		}
		if f.Times--; f.Times == 0 {
			r.faults = slices.Delete(r.faults, i, i+1)
		}
		return apierrors.NewGenericServerResponse(cmp.Or(f.Code, http.StatusInternalServerError), asked.Verb,
			asked.Resource.GroupResource(), asked.Name, "the sandbox was told to let this request fail", 0, true)
	}
	return nil
}

// after records a request that was answered.
func (r *recorder) after(_ context.Context, asked server.Request, code int) error {
	if !r.on {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.requests) == most {
		r.requests = slices.Delete(r.requests, 0, most/10)
	}
	r.requests = append(r.requests, Request{
		Verb: asked.Verb, Resource: asked.Resource, Subresource: asked.Subresource, Namespace: asked.Namespace, Name: asked.Name,
		UserAgent: asked.UserAgent(), Code: code, number: asked.Number,
	})
	return nil
}

// Fail makes requests of clients fail that match, until end is called. Of several faults that match, the first one applies.
// The controllers that make workloads come alive are not affected. It panics if no request can match, as with a resource that
// the sandbox does not serve: a test that lets nothing fail would look like one that passes.
func (s *Sandbox) Fail(f Fault) (end func()) {
	f, err := s.fault(f)
	if err != nil {
		panic(fmt.Sprintf("sandbox: letting requests fail: %v", err))
	}
	return s.fail(f)
}

// fail is Fail for a fault with the names of the server.
func (s *Sandbox) fail(f Fault) (end func()) {
	r := &s.requests
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, &f)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.faults = slices.DeleteFunc(r.faults, func(each *Fault) bool { return each == &f })
	}
}

// endFaults ends the faults that match, and reports whether there was one.
func (r *recorder) endFaults(matches func(Fault) bool) (found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.faults)
	r.faults = slices.DeleteFunc(r.faults, func(each *Fault) bool { return matches(*each) })
	return len(r.faults) < before
}

// Requests returns the requests for objects that clients have sent since the last call, with the codes of their responses, in
// the order in which the server got them. A request is recorded when its response begins: one that is under way comes with the
// next call. Bodies are not recorded, nor are requests for discovery and those of the sandbox's own controllers. The last 9,000
// requests are kept at least. Without Options.Record it panics: no requests would look like an idle client.
func (s *Sandbox) Requests() []Request {
	r := &s.requests
	if !r.on {
		panic("sandbox: Requests needs Options.Record")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.requests
	r.requests = nil
	slices.SortStableFunc(out, func(a, b Request) int { return cmp.Compare(a.number, b.number) })
	return out
}
