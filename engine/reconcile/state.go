// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
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
	"github.com/handwerk-dev/handwerk/engine/observe/trace"
)

// Input is the input of a run. Nothing changes it.
type Input struct {
	Key cache.ObjectName
	// Object is the object as the reconcile has read it. For a schedule it has only its kind.
	Object *unstructured.Unstructured
	// Version is the cache's version of the object at the read; nil if the cache has none.
	Version *cached.Object
	// Gone: the cache does not show the object. Deletion is never empty then.
	Gone bool
	// Deletion identifies the deletion of the object; empty if it is not being deleted.
	Deletion string
	Now      time.Time
	// Changes are the events for the object since the last reconcile.
	Changes inbox.Changes
	// Share is the memory that the reconcile may use; nil for any amount.
	Share *children.Share
	// Trace and Span are the ids of the span of the reconcile, for the log; empty without a tracer.
	Trace, Span string
}

// traced returns the input with the ids of the context's span.
func (in Input) traced(ctx context.Context, t trace.Tracer) Input {
	if t != nil {
		in.Trace, in.Span = t.IDs(ctx)
	}
	return in
}

// resourceWide reports whether the run is for the resource as a whole.
func (in Input) resourceWide() bool { return in.Object.GetName() == "" }

// State is the progress of a run. Each step takes a state and returns the next one.
type State struct {
	// Draft is the object as handlers see it.
	Draft
	// Attempts are the handlers that were due so far.
	Attempts Attempts
	// Found has triggers beside the changes of the input.
	Found Found
	// Filtered are the conditions of handlers whose filters exclude the object. Explicit are conditions that handlers
	// have set; they win over offered ones.
	Filtered []*dsl.Patch
	Explicit []metav1.Condition
	// Known is the object as its handlers saw it, with the own writes of this reconcile, in the form of the cache.
	Known *unstructured.Unstructured
	// Written has the server's answers to the writes of the reconcile, in order.
	Written []*unstructured.Unstructured
	// Retried: a person asks for a retry by the annotation, which the write removes.
	Retried bool
	// Searched: it is known which children hold the deletion.
	Searched bool
	// Due is when the next reconcile is due.
	Due queue.Next
	// Ended, Notes and Why are for the result.
	Ended []Ended
	Notes []Note
	Why   []Why
}

// written returns the object after the last write of the reconcile, nil before the first.
func (st State) written() *unstructured.Unstructured {
	if len(st.Written) == 0 {
		return nil
	}
	return st.Written[len(st.Written)-1]
}

// Result has the findings and actions of a run. [Observer.Ended] makes the log, Events and metrics from it.
type Result struct {
	Input
	// Due is when the next reconcile is due. Err is why the run could not be finished, nil if it was.
	Due queue.Next
	Err error
	// Attempts are the handlers that were due. Ended are their finished attempts, in order.
	Attempts Attempts
	Ended    []Ended
	Notes    []Note
	// Why has the reason of each handler that was due and did not run. [Result.Reasons] has one for each handler.
	Why []Why
	// Vanished: the write found that the object was gone, so later handlers did not run.
	Vanished bool
	// Written is the object after the last write of a finished run, nil if it wrote nothing.
	Written *unstructured.Unstructured
	// Health is the health of the object, if HealthKnown is set.
	Health      ops.ObjectHealth
	HealthKnown bool
	// Echoes are the versions that the run has written, if the next reconcile would find nothing to do in them.
	Echoes []inbox.Echo
}

// run is one run: its input, and the state that it has opened for its object. Outcomes of handlers are kept only once
// they are written; otherwise the next reconcile begins with the same progress.
type run struct {
	*Controller
	Input
	memory   *ObjectState
	progress *progress.Session
	// family has the writes of the reconcile and the object's children. related and indexes are views of related objects
	// and of the operator's indexes.
	family  *children.Session
	related *related.View
	indexes *index.View
	// filters evaluates the handlers' filters, and keeps their answers.
	filters filters
	// appointments caches the times of handlers with an `at` expression.
	appointments map[*dsl.Handler]appointment
	// walk is the run on the trail of writes, which finds loops.
	walk *breaker.Walk
	// outcomesRead has the outcomes that each handler saw when it was decided, by handler id; nil if no handler reads
	// outcomes.
	outcomesRead map[string][]any
	// deleted: a handler has deleted the object, from any goroutine.
	deleted atomic.Bool
	// marks: some handler that stores progress matches the object; nil before it is computed.
	marks *bool
	// bareDraft is the draft in which the run begins, for answers to people.
	bareDraft Draft
}
