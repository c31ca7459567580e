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
	"github.com/handwerk-dev/handwerk/engine/decide/limits"
	"github.com/handwerk-dev/handwerk/engine/decide/pause"
	"github.com/handwerk-dev/handwerk/engine/observe/trace"
	"github.com/handwerk-dev/handwerk/engine/reconcile/attempt"
	"github.com/handwerk-dev/handwerk/engine/reconcile/daemon"
)

// Controller serves the reconciles of one resource; package engine makes one for each. All fields are required. Its
// methods are safe for concurrent use, if each key is used by one goroutine at a time.
type Controller struct {
	Rules    Rules
	Host     Host
	Observer *Observer

	// Own is the source of the resource's objects. Inbox keeps changes of them between reconciles.
	Own   *source.Source
	Inbox *inbox.Inbox[StoredState]
	// Family, Relations, Indexes, Daemons and Machines serve the objects with children, related objects, indexes,
	// daemons and state machines. Tombstones confirms deletions.
	Family     *children.Family
	Relations  *related.Index
	Indexes    *index.Readers
	Daemons    *daemon.Manager
	Machines   *Machines
	Tombstones *tombstone.Confirmer

	// Writer writes to the resource's objects. Others is the base of handlers' clients.
	Writer *Writer
	Others *ClientSettings
	// Running are the reconciles that run now. Subhandlers are the settings of sub-handlers.
	Running     *Running
	Subhandlers attempt.SubhandlerSettings
	// Trail knows which writes woke which reconciles. Budget is the memory that all reconciles share.
	Trail  *breaker.Trail
	Budget *children.Budget
	// Pauses knows which objects are paused.
	Pauses *pause.Board
	// Limits bound the deletions that begin.
	Limits *limits.Deletions
	// Memo is the operator's memo.
	Memo *dsl.Memo
	// Tracer gets a span for each reconcile and attempt; nil for none. It is optional.
	Tracer trace.Tracer
}

// Host is the process in which the reconciles of a resource run.
type Host interface {
	attempt.Errors
	// Held reports whether this process may write, as a fence does. It waits while that is in doubt.
	Held(ctx context.Context) bool
	// Keyed waits for the key of digests of Secrets. The error says why the key cannot be read or made.
	Keyed(ctx context.Context) error
	// IsKey reports whether an object of the resource is the Secret with that key.
	IsKey(namespace, name string) bool
	// Read reads an object from the API server. It returns nil if the object is gone.
	Read(ctx context.Context, gvr schema.GroupVersionResource, key cache.ObjectName) (*unstructured.Unstructured, error)
	// Refused notes how a handler of an object, or a request of the reconcile itself ([Itself]), ended. An error for a
	// missing right or an absent server leads to a retry when that is over.
	Refused(key cache.ObjectName, handler string, err error)
	// OnWrite makes other objects' reconciles wait until caches show a write to their object.
	OnWrite(by inbox.Key, gvr schema.GroupVersionResource, o *unstructured.Unstructured)
}
