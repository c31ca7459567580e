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

// DaemonFunc is a daemon's code: it runs beside the handlers, for as long as it likes, in a goroutine of its own.
//
// The context ends when the daemon is told to stop; [DaemonRequest.Stop], or context.Cause, says why. It has
// [Daemon.StopWithin] from then on to clean up, with a context of its own, as context.WithoutCancel(ctx): after that
// no write that it makes leaves the process, and its object is not held for it any more. A loss of leadership gives no time.
//
// What it returns decides how it goes on, unless it was told to stop:
//
//   - nil: it is done, and not run again for the object in this process, whatever becomes of the object or its filters.
//   - [Permanent]: it has failed, and is not run again either; the log and an Event say so.
//   - another error, or a panic: it is run again after the handler's back-off, or the time that [Temporary] or [Waiting]
//     gives, [Retries] times. A change of the object, of all but its status, cuts that short, once a second at most, and
//     begins the count anew; what the daemon has seen, or sent, is none. So does a run that lasted longer than the longest
//     back-off.
type DaemonFunc func(ctx context.Context, r *DaemonRequest) error

// Daemon makes a handler one that runs all the time. See [Resource.Daemon].
type Daemon struct {
	// Func is the code.
	Func DaemonFunc
	// StopWithin is the time that the daemon has to end when it is told to. Defaults to the operator's grace period,
	// which also bounds it at shutdown.
	StopWithin time.Duration
}

// Running is the cause of daemons, in logs and metrics and for their filters. No list of causes has it.
const Running Cause = "daemon"

// Stop is why a daemon is told to stop. It is the cause of its context.
type Stop string

// The reasons to stop.
const (
	// StopFilters: the daemon's filters do not match the object any more. It is started again when they do.
	StopFilters Stop = "its filters do not match"
	// StopDeleted: the object is being deleted. Its deletion waits for the daemon, unless that has [NoFinalizer].
	StopDeleted Stop = "the object is being deleted"
	// StopGone: the object is gone, or the operator does not see it any more.
	StopGone Stop = "the object is gone"
	// StopLeadership: the process does not lead any more. Nothing can be written.
	StopLeadership Stop = "leadership is lost"
	// StopResource: the operator does not work on the resource any more.
	StopResource Stop = "the resource is stopped"
	// StopShutdown: the process stops.
	StopShutdown Stop = "the operator stops"
)

// Error says the reason.
func (s Stop) Error() string { return string(s) }

// Live is what a daemon has of the engine while it runs. Tests of daemons make their own.
type Live interface {
	// Current returns the object as it is known now, what the daemon itself has sent included: a private copy. Of one
	// that is gone, it is as it was last seen.
	Current() *unstructured.Unstructured
	// Changes gets a value after the object has changed; several changes that nobody has received are one. What the
	// daemon itself sends is no change.
	Changes() <-chan struct{}
	// Stop is why the daemon is to stop, empty while it is not.
	Stop() Stop
	// Send writes what the patch asks for and the object does not have. After a conflict it is laid on what others have
	// written.
	Send(ctx context.Context, p *Patch) error
}

// DaemonRequest is what a daemon gets for each of its runs.
type DaemonRequest struct {
	Live
	// Object is the object as it was when this run began: a private copy.
	Object *unstructured.Unstructured
	// Attempt counts the runs that failed one after another, and this one: from 1.
	Attempt int
	// Log carries the resource, namespace, name, handler, cause and attempt.
	Log logr.Logger
	// Patch is what the daemon wants changed in the object, status included. It is sent by Flush, and when the run
	// ends, unless that panicked.
	Patch *Patch
	// Events reports to people who look at the object.
	Events Events
	// Client reads and writes other objects. It can be used until the run has ended, or its time to stop is over.
	Client Client
	// Children reads the objects that the object owns: each call sees what caches show at that moment, and what this
	// process has written to them only once they do. Daemons make none; a handler does, and runs when a daemon changes what
	// it looks at.
	Children ChildReader
	// Indexes are the operator's; see [Index]. Each call of [Lookup.Get] and [Lookup.Keys] sees them at that moment. Nobody
	// tells the daemon when they change.
	Indexes Indexes
	// Memo is the object's in this process, the same that its handlers have; OperatorMemo is the operator's. Handlers run
	// at the same time, so a value that both change has a lock of its own, or is changed by [Memo.Update].
	Memo, OperatorMemo *Memo
	// Params are the handler's parameters from the configuration.
	Params Params
	// Kept is what the cache holds of Object; nil for all of it.
	Kept *shape.Kept

	// asked gets the type of a daemon of TypedDaemon, which does nothing else then; see typeOf.
	asked *reflect.Type
}

// indexed returns the indexes that the daemon can read.
func (r *DaemonRequest) indexed() Indexes { return r.Indexes }

// Flush sends what Patch asks for; it is empty then. A wrong path or value is an error that is [Permanent], and what
// the server refuses as invalid is dropped; after any other error Patch is as it was, for the next time. Where one of
// [Patch.Transform] fails, all else is sent.
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

// Daemon adds a daemon: a goroutine for each object that its filters match, which lives beside the object. It is started
// when the object is seen, and told to stop when the filters do not match any more, when the object is deleted or gone,
// and when the process does not work on it any more. There are never two for one object: where it is to be started again,
// as for an object that was made anew under the same name, the earlier one has ended before.
//
// A deletion waits for the daemon, with the operator's finalizer, until it has ended or its time to stop is over;
// delete handlers run then. [NoFinalizer] lets the object go at once. Of the options of handlers it takes those that filter
// ([When], [Label], [Annotation] and the like), [Retries], [WithBackoff], [NoFinalizer], [Needs], [InitialDelay] and
// [StopWithin]. Daemon panics when fn is nil.
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

// StopWithin sets the time that a daemon has to end when it is told to; see Daemon.StopWithin.
func StopWithin(d time.Duration) Option {
	return func(h *Handler) {
		if h.Daemon == nil {
			h.invalid = append(h.invalid, Fault{Place: Place{Field: "stopWithin"}, Unwanted: true, Err: errors.New("is only for daemons")})
			return
		}
		h.Daemon.StopWithin = d
	}
}

// Delay is how long a daemon, or a timer, lets pass from when the process sees the object first, or sees that the
// filters match a daemon again, to the first run.
type Delay struct {
	// Fixed is the time.
	Fixed time.Duration
	// From, when set, tells the time for an object, and Fixed is not used. It must be quick, and only reads. Less than
	// zero is none; so is a panic, which is logged.
	From func(s *Subject) time.Duration
}

// InitialDelay lets time pass before the first run of a daemon or a timer; see [Delay].
func InitialDelay(d time.Duration) Option {
	return func(h *Handler) { h.Delay = &Delay{Fixed: d} }
}

// InitialDelayFrom is [InitialDelay] with a time that is worked out from the object.
func InitialDelayFrom(tell func(s *Subject) time.Duration) Option {
	return func(h *Handler) { h.Delay = &Delay{From: tell} }
}

// Finalizes reports whether the deletion of an object that the handler sees waits for it.
func (h *Handler) Finalizes() bool {
	return (h.On(Delete) || h.Daemon != nil) && !h.NoFinalizer
}

// checkDaemon reports what a daemon cannot have.
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
	for _, has := range []struct {
		field string
		any   bool
		why   string
	}{
		{"causes", len(h.given) != 1 || h.given[0] != Running, "is not for daemons, which run all the time"},
		{"every", h.Timing != nil, "is not for daemons, which run all the time"},
		{"field", len(h.Fields) > 0, "is not for daemons, which hear of every change"},
		{"timeout", h.Timeout != 0, "is not for daemons, which run as long as they like (want stopWithin for the time to end)"},
		{"deadline", h.Deadline != 0, "is not for daemons, which run as long as they like"},
		{"errors", h.Errors != "", "is not for daemons: an error has them run again, Permanent ends them"},
		{"deleted", h.Deleted, "is not for daemons, which end before their object goes"},
		{"after", len(h.After) > 0, "is not for daemons, which run beside handlers"},
		{"was", len(h.Was) > 0, "is not for daemons, of which nothing is kept"},
		{"onFailure", h.Release, "is not for daemons: a deletion does not wait for one that has ended"},
		{"old", h.NoOld, "is not for daemons, of which nothing is kept"},
	} {
		if has.any {
			c.unwanted(has.field, "%s", has.why)
		}
	}
}

// checkDelay reports a delay that cannot be, or that there is nothing to delay with.
func (h *Handler) checkDelay(c check) {
	switch {
	case h.Delay == nil:
	case h.Daemon == nil && !h.On(Timer):
		c.note(Fault{Unwanted: true, Lacks: "every"}, "initialDelay", "is only for daemons and timers (every, pause, cron or idle)")
	case h.Delay.Fixed < 0:
		c.fault("initialDelay", "must not be negative")
	case h.ResourceWide && h.Delay.From != nil:
		c.unwanted("initialDelay", "cannot be worked out from the object in a schedule, which has no one object")
	}
}
