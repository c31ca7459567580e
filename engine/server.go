// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/access"
	"github.com/handwerk-dev/handwerk/engine/cluster/notfound"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
)

// server is the API server. Its clients report missing rights, compare answers with the caches, and protect the
// operator's own objects.
type server struct {
	clients *transport.Clients
	watches *watch.Set
	access  *access.Monitor
	own     ownPlaces
}

// Client reaches a resource, in a namespace unless that is empty.
func (s *server) Client(gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	return reach{s, gvr, namespace}.Client(s.clients.Dynamic.Resource(gvr).Namespace(namespace))
}

// keeper returns a client that may write the operator's own objects.
func (s *server) keeper(gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	return reach{s, gvr, namespace}.open(s.clients.Dynamic.Resource(gvr).Namespace(namespace))
}

// Handled returns a client for the objects that handlers look at: answers to its writes lack managedFields.
func (s *server) Handled(gvr schema.GroupVersionResource, namespace string) patch.Client {
	return transport.Handled{Clients: s.clients, Access: reach{s, gvr, namespace}, GVR: gvr, Namespace: namespace}
}

// Read reads one object from the server. It returns nil if the answer says that the object is gone. A 404 that does not
// name the object is an error like any other.
func (s *server) Read(ctx context.Context, gvr schema.GroupVersionResource, key cache.ObjectName) (*unstructured.Unstructured, error) {
	o, err := s.Client(gvr, key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if notfound.IsGone(err, gvr.GroupResource(), key.Name) {
		return nil, nil
	}
	return o, err
}

// reach wraps the clients of a resource in a namespace.
type reach struct {
	server    *server
	gvr       schema.GroupVersionResource
	namespace string
}

// Client wraps a client.
func (r reach) Client(c dynamic.ResourceInterface) dynamic.ResourceInterface {
	return r.server.own.guard(r.gvr, r.namespace, r.open(c))
}

// open wraps a client like Client, but allows writes to the operator's own objects. Only the engine uses it.
func (r reach) open(c dynamic.ResourceInterface) dynamic.ResourceInterface {
	return r.server.watches.Compare(r.gvr, r.namespace, r.server.access.Client(c, r.gvr))
}

// faults distinguishes errors of an outage, and others that the log reports once, from those of handlers; see
// [attempt.Errors].
type faults struct {
	outages *transport.Outages
	access  *access.Monitor
}

// Logged reports whether the log has one line for all errors of this kind: no server answers, this process does not
// lead, a right is missing, or resource versions have gone back.
func (f *faults) Logged(err error) bool {
	silent := transport.IsUnanswered(err) && f.outages.Logged()
	return silent || source.IsUnread(err) || errors.Is(err, transport.ErrNotLeading) || f.access.Logged(err) || f.outages.Covers(err) || watch.IsRollback(err)
}

// Covered reports whether an error comes from an outage of the API server that the log names.
func (f *faults) Covered(err error) bool { return f.outages.Covers(err) }

// Unreached reports whether an error comes from the outage that the log names. Such an attempt says nothing about the
// handler.
func (f *faults) Unreached(err error) bool { return source.IsUnanswered(err) && f.outages.Away() }
