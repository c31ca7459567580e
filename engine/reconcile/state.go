// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/cache/index"
	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/cache/related"
	"github.com/handwerk-dev/handwerk/engine/children"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/decide/breaker"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// Input is what a reconcile works from. Nothing changes it.
type Input struct {
	Key cache.ObjectName
	// Object is the object as the reconcile has read it. Where a reconcile is over the resource as a whole, it has no more than its kind.
	Object *unstructured.Unstructured
	// Version is what the cache had of it then; nil where it has nothing.
	Version *cached.Object
	// Gone: the cache does not show the object any more.
	Gone bool
	// Deletion is the moment at which the object was deleted, empty while it lives.
	Deletion string
	Now      time.Time
	// Changes are what came up for the object since the last reconcile.
	Changes inbox.Changes
	// Share is the memory that the reconcile may take; nil for any.
	Share *children.Share
	// Asked: the reconcile is for an answer alone. It runs no handler, and writes and remembers nothing.
	Asked bool
}

// resourceWide reports whether the reconcile is over the resource as a whole.
func (in Input) resourceWide() bool { return in.Object.GetName() == "" }

// State is how far a reconcile has come. Each step takes it, and returns the next one.
type State struct {
	// Draft is the object as handlers see it.
	Draft
	// Attempts are the handlers that have something to do, as far as the reconcile has come.
	Jobs Attempts
	// Found is what the reconcile has found to have come up, beside the changes of its input.
	Found Found
	// Filtered is what handlers say in conditions of filters that keep them from acting. Explicit are the conditions that handlers
	// set themselves: what is offered does not take their place.
	Filtered []*dsl.Patch
	Explicit []metav1.Condition
	// Known is the object as its handlers saw it, with the reconcile's own writes since then and no others, as the cache shows it.
	Known *unstructured.Unstructured
	// Written is the object after each request of the reconcile, in order, by the server's answers.
	Written []*unstructured.Unstructured
	// Retried: a person has handlers run by the annotation, which goes with the reconcile's write.
	Retried bool
	// Searched: all that must be known about children before the object goes is known.
	Searched bool
	// Due is when the next reconcile is due.
	Due queue.Next
	// Attempts, Notes and Why are for the result.
	Attempts []Attempted
	Notes    []Note
	Why      []Why
}

// written returns the object as the reconcile has written it, nil before it does.
func (st State) written() *unstructured.Unstructured {
	if len(st.Written) == 0 {
		return nil
	}
	return st.Written[len(st.Written)-1]
}

// Result is what a reconcile found and did. The log, Events and metrics are made from it ([Observer.Passed]).
type Result struct {
	Input
	// Due is when the next reconcile is due. Err is why the reconcile could not be finished; nil where it was.
	Due queue.Next
	Err error
	// Attempts are the handlers that had something to do, and Attempts their runs, in order.
	Jobs     Attempts
	Attempts []Attempted
	Notes    []Note
	// Why says of each handler for which something was due, and that did not run, why. [Result.Reasons] says it of all handlers.
	Why []Why
	// Vanished: the API server no longer had the object when the reconcile wrote, so handlers after that did not get their turn.
	Vanished bool
	// Written is the object as a finished reconcile has written it, nil where it has not.
	Written *unstructured.Unstructured
	// Stand is how the object stands; Stands: that is known.
	Stand  ops.Stand
	Stands bool
	// Echoes are what the reconcile has written its object as, if the next reconcile would find nothing to do in that.
	Echoes []inbox.Echo
}

// run is one reconcile at work: its input, and what it has opened for its object. What handlers do is kept only when the reconcile has
// written it; otherwise the next reconcile begins from the same progress.
type run struct {
	*Controller
	Input
	memory *ObjectState
	ledger *progress.Ledger
	// family knows what the reconcile has written, and the object's children; related and indexes are what it sees of related objects
	// and of the operator's indexes.
	family  *children.Session
	related *related.View
	indexes *index.View
	// filters asks the handlers' filters.
	filters filters
	// appointments are the times of handlers that run at a time from the object, as far as the reconcile has come to them.
	appointments map[*dsl.Handler]appointment
	// walk knows what woke the reconcile, and notes its writes.
	walk *breaker.Walk
	// outcomesRead are the outcomes that handlers knew when it was their turn, by the reader's id; nil where none reads outcomes.
	outcomesRead map[string][]any
	// deleted: a handler has deleted the object. It does so from any goroutine.
	deleted atomic.Bool
	// marks: some handler that leaves progress on objects sees this one; nil before that is asked.
	marks *bool
	// opening is the state in which the reconcile begins.
	opening State
}
