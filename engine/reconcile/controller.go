// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/cache/index"
	"github.com/handwerk-dev/handwerk/engine/cache/related"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/cache/tombstone"
	"github.com/handwerk-dev/handwerk/engine/children"
	"github.com/handwerk-dev/handwerk/engine/decide/breaker"
	"github.com/handwerk-dev/handwerk/engine/decide/pause"
	"github.com/handwerk-dev/handwerk/engine/reconcile/attempt"
	"github.com/handwerk-dev/handwerk/engine/reconcile/daemon"
)

// Controller is what a resource offers its reconciles. Package engine makes one for each resource. All fields are required. Its methods may
// be called by any number of goroutines, but for one key by one at a time.
type Controller struct {
	Rules    Rules
	Host     Host
	Observer *Observer

	// Own is the feed of the resource's objects, and Box keeps what comes up for them between reconciles.
	Own   *source.Source
	Inbox *inbox.Inbox[ObjectState]
	// Family, Relations, Indexes, Daemons, Machines and Tombstones serve the resource's objects with their children, related
	// objects, indexes, daemons and state machines, and find out what became of objects that are gone.
	Family     *children.Family
	Relations  *related.Index
	Indexes    *index.Readers
	Daemons    *daemon.Manager
	Machines   *Machines
	Tombstones *tombstone.Finder

	// Writer writes to the resource's objects, and Others reaches others for handlers.
	Writer *Writer
	Others *ClientSettings
	// Running are the reconciles that run, and Subhandlers what sub-handlers need.
	Running     *Running
	Subhandlers attempt.SubhandlerSettings
	// Trail knows which writes woke which passes, and Budget is the memory that all reconciles share.
	Trail  *breaker.Trail
	Budget *children.Budget
	// Pauses knows what is paused.
	Pauses *pause.Board
	// Memo is the operator's.
	Memo *dsl.Memo
}

// Host is what reconciles ask of the process in which they run, for their resource.
type Host interface {
	attempt.Errors
	// Held is the fence: it reports whether writes may leave the process. While that is in doubt, it waits.
	Held(ctx context.Context) bool
	// Keyed waits for the key with which handlers of the resource leave digests of Secrets. The error says why the key cannot be
	// read or made.
	Keyed(ctx context.Context) error
	// IsKey reports whether an object of the resource is the Secret with that key.
	IsKey(namespace, name string) bool
	// Read reads an object from the API server. It is nil where the answer says that the object is gone.
	Read(ctx context.Context, gvr schema.GroupVersionResource, key cache.ObjectName) (*unstructured.Unstructured, error)
	// Refused notes how a handler of an object ended, or a request of the reconcile itself ([Itself]): whether a right was missing, or
	// the API server.
	Refused(key cache.ObjectName, handler string, err error)
	// Announce makes the reconciles over an object wait for a write to it by the reconcile over another one.
	Announce(by inbox.Key, gvr schema.GroupVersionResource, o *unstructured.Unstructured)
}
