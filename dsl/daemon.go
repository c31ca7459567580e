// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// DaemonFunc is the code of a daemon. It runs beside the handlers, as long as it likes, in its own goroutine.
//
// When the daemon must stop, its context ends; [DaemonRequest.Stop], or context.Cause, says why. The daemon then
// has the time of [Daemon.StopWithin] to clean up, with another context such as context.WithoutCancel(ctx). After
// that time its writes are refused, and its object's deletion does not wait for it any more. A loss of leadership
// leaves no time to clean up.
//
// When the daemon returns without having to stop, the result decides how it goes on:
//
//   - nil: the daemon is done. It does not run again for the object in this process, whatever happens to the
//     object or its filters.
//   - [Permanent]: the daemon has failed, and does not run again either; the log and an Event say so.
//   - another error, or a panic: the daemon runs again after the handler's back-off, or after the time of
//     [Temporary] or [Waiting], up to [Retries] times. A change of the object outside its status ends the wait, at
//     most once a second, and resets the count. Changes that the daemon has seen or sent do not count. A run that
//     lasted longer than the longest back-off also resets the count.
type DaemonFunc func(ctx context.Context, r *DaemonRequest) error

// Daemon makes a handler run all the time. See [Resource.Daemon].
type Daemon struct {
	// Func is the code.
	Func DaemonFunc
	// StopWithin is the time that the daemon has to end when it must stop. Defaults to the operator's grace period,
	// which is also the limit at shutdown.
	StopWithin time.Duration
}

// Running is the cause of daemons, in logs and metrics and for their filters. It cannot be in a list of causes.
const Running Cause = "daemon"

// Stop says why a daemon must stop. It is the cause of its context.
type Stop string

// The reasons to stop.
const (
	// StopFilters: the daemon's filters do not match the object any more. The daemon starts again when they do.
	StopFilters Stop = "its filters do not match"
	// StopDeleted: the object is being deleted. Its deletion waits for the daemon, unless the daemon has
	// [NoFinalizer].
	StopDeleted Stop = "the object is being deleted"
	// StopPaused: the object, its namespace or the operator is paused. The daemon starts again afterwards.
	StopPaused Stop = "it is paused"
	// StopGone: the object is gone, or the operator does not see it any more.
	StopGone Stop = "the object is gone"
	// StopLeadership: the process does not lead any more. Writes are refused.
	StopLeadership Stop = "leadership is lost"
	// StopShutdown: the process stops.
	StopShutdown Stop = "the operator stops"
)

// Error returns the reason.
func (s Stop) Error() string { return string(s) }

// Live is the engine's side of a running daemon. Tests of daemons implement it themselves.
type Live interface {
	// Current returns a private copy of the object as it is known now, including what the daemon itself has sent.
	// For an object that is gone, it is the last known one.
	Current() *unstructured.Unstructured
	// Changes receives a value after the object has changed. Several changes that were not received yet are one
	// value. The daemon's own writes do not count.
	Changes() <-chan struct{}
	// Stop returns why the daemon must stop; empty while it may run.
	Stop() Stop
	// Send writes the patch, unless the object already is so. After a conflict, it applies the patch to the latest
	// object.
	Send(ctx context.Context, p *Patch) error
}

// DaemonRequest is the request of one run of a daemon.
type DaemonRequest struct {
	Live
	// Object is a private copy of the object at the beginning of this run.
	Object *unstructured.Unstructured
	// Attempt counts the failed runs in a row, and this one: from 1.
	Attempt int
	// Log carries the resource, namespace, name, handler, cause and attempt.
	Log logr.Logger
	// Patch has the changes that the daemon wants in the object, status included. Flush sends it, and so does the
	// end of the run, unless the run panicked.
	Patch *Patch
	// Events sends Kubernetes Events of the object.
	Events Events
	// Client reads and writes other objects. It works until the run has ended, or the time to stop is over.
	Client Client
	// Children reads the children of the object. Each call reads the caches at that moment; a write by this process
	// appears only when the cache has it. Daemons do not make children: let a handler do it that runs when the
	// daemon changes the object.
	Children ChildReader
	// Indexes are the operator's; see [Index]. Each call of [Lookup.Get] and [Lookup.Keys] reads them at that
	// moment. The daemon is not notified when they change.
	Indexes Indexes
	// Memo is the object's memo in this process, shared with its handlers. OperatorMemo is the operator's. Handlers
	// run at the same time as the daemon, so a value that both change needs its own lock, or is changed by
	// [Memo.Update].
	Memo, OperatorMemo *Memo
	// Params are the handler's parameters from the configuration.
	Params Params
	// Kept says which parts of Object exist, because of the cache or of [Reads]; nil means all.
	Kept *shape.Kept

	// asked receives the type of a daemon made by TypedDaemon, which then does nothing else; see typeOf.
	asked *reflect.Type
}

// indexed returns the indexes that the daemon can read.
func (r *DaemonRequest) indexed() Indexes { return r.Indexes }

// Flush sends Patch and empties it. A wrong path or value is a [Permanent] error. A change that the server refuses
// as invalid is dropped. After any other error, Patch is kept for the next time. When a function of
// [Patch.Transform] fails, the rest of the patch is sent.
func (r *DaemonRequest) Flush(ctx context.Context) error {
	p := r.Patch
	if err := p.Err(); err != nil {
		r.Patch = NewPatch()
		return Permanent(err)
	}
	if p.Empty() {
		return nil
	}
	err := r.Send(ctx, p)
	if err == nil || apierrors.IsInvalid(err) || IsPermanent(err) {
		r.Patch = NewPatch()
	}
	return err
}

// Daemon adds a daemon: one goroutine for each object that its filters match. It starts when the process sees the
// object. It must stop when the filters do not match any more, when the object is deleted or gone, and when the
// process does not work on it any more. An object never has two goroutines of one daemon: before the daemon starts
// again, as for an object that was created again under the same name, the earlier run has ended.
//
// A deletion waits, by the operator's finalizer, until the daemon has ended or its time to stop is over; delete
// handlers run afterwards. With [NoFinalizer] the deletion does not wait. A daemon takes these options: filters
// ([When], [Label], [Annotation] and the like), [Retries], [WithBackoff], [NoFinalizer], [Needs], [InitialDelay]
// and [StopWithin]. Daemon panics when fn is nil.
func (r *Resource) Daemon(id string, fn DaemonFunc, options ...Option) {
	if fn == nil {
		panic("daemon " + id + " has no function")
	}
	h := Handler{ID: id, Causes: []Cause{Running}, Retries: Unlimited, Daemon: &Daemon{Func: fn}}
	for _, set := range options {
		set(&h)
	}
	r.Add(h)
}

// StopWithin sets the time that a daemon has to end when it must stop; see Daemon.StopWithin.
func StopWithin(d time.Duration) Option {
	return func(h *Handler) {
		if h.Daemon == nil {
			h.invalid = append(h.invalid, Fault{Place: Place{Field: "stopWithin"}, Unwanted: true, Err: errors.New("is only for daemons")})
			return
		}
		h.Daemon.StopWithin = d
	}
}

// Delay is the time before the first run of a daemon or a timer. It counts from when the process sees the object
// first; for a daemon also from when its filters match again.
type Delay struct {
	// Fixed is the time.
	Fixed time.Duration
	// From, when set, returns the time for an object, and Fixed is not used. It must be quick, and must not change
	// anything. A negative time means zero. So does a panic, which is logged.
	From func(s *Subject) time.Duration
}

// InitialDelay sets the time before the first run of a daemon or a timer; see [Delay].
func InitialDelay(d time.Duration) Option {
	return func(h *Handler) { h.Delay = &Delay{Fixed: d} }
}

// InitialDelayFrom is [InitialDelay] with a time that is computed from the object.
func InitialDelayFrom(compute func(s *Subject) time.Duration) Option {
	return func(h *Handler) { h.Delay = &Delay{From: compute} }
}

// Finalizes reports whether the deletion of an object waits for the handler when its filters match.
func (h *Handler) Finalizes() bool {
	return (h.On(Delete) || h.Daemon != nil) && !h.NoFinalizer
}

// checkDaemon reports faults of what only daemons have.
func (h *Handler) checkDaemon(c check) {
	if h.Daemon == nil {
		return
	}
	if h.Daemon.Func == nil {
		c.fault("", "the daemon has no function")
	}
	if h.Daemon.StopWithin < 0 {
		c.fault("stopWithin", "must not be negative")
	}
}

// checkDelay reports an invalid delay, and a delay of a handler that is neither a daemon nor a timer.
func (h *Handler) checkDelay(c check) {
	switch {
	case h.Delay == nil:
	case h.Daemon == nil && !h.On(Timer):
		c.note(Fault{Unwanted: true, Lacks: "every"}, "initialDelay", "is only for daemons and timers (every, pause, cron or idle)")
	case h.AtTime():
		c.unwanted("initialDelay", "is not for handlers with at, which run at their time")
	case h.Delay.Fixed < 0:
		c.fault("initialDelay", "must not be negative")
	case h.ResourceWide && h.Delay.From != nil:
		c.unwanted("initialDelay", "cannot be worked out from the object in a schedule, which has no one object")
	}
}
