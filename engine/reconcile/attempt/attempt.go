// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package attempt runs a handler, a sub-handler or a filter once: with a deadline, and with a panic turned into an error.
// Its result says how the attempt ended.
package attempt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/guard"
	"github.com/handwerk-dev/handwerk/engine/cluster/notfound"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// errTimeout is wrapped by the error of a handler that exceeds its timeout, or the deadline of all attempts.
var errTimeout = errors.New("the timeout passed")

// Run runs the code of a handler, with its timeout and at most until end (zero for none). The span begins with the
// code's context and ends before Run returns, so that goroutines of the handler cannot write later. If the handler's
// patch is wrong, the error is permanent.
func Run(ctx context.Context, h *dsl.Handler, code dsl.Func, request *dsl.Request, end time.Time, span *transport.Span) error {
	ctx, expire := limited(ctx, h, end)
	defer expire()
	ctx = span.Begin(transport.OfHandler(ctx, h.ID))
	defer span.End()
	return call(ctx, h, code, request)
}

// Part runs the code of a sub-handler, within the span of its handler.
func Part(ctx context.Context, h *dsl.Handler, code dsl.Func, request *dsl.Request, end time.Time) error {
	ctx, cancel := limited(ctx, h, end)
	defer cancel()
	return call(ctx, h, code, request)
}

// call calls the code, and turns a panic, a timeout and a wrong patch into errors.
func call(ctx context.Context, h *dsl.Handler, code dsl.Func, request *dsl.Request) (err error) {
	if broke := guard.Call("handler", func() { err = code(ctx, request) }); broke != nil {
		if stack := guard.Stack(broke); stack != nil {
			request.Log.Error(broke, "handler panicked", "stack", string(stack))
		}
		return broke
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && err != nil:
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return context.Cause(ctx)
	}
	if _, waits := Waits(err); err != nil && !waits {
		return err
	}
	if wrong := wrongPatch(h, request.Patch); wrong != nil {
		return dsl.Permanent(wrong)
	}
	return err
}

// limited returns a context that ends with the timeout of an attempt or the deadline of all attempts. Its cause says
// which.
func limited(ctx context.Context, h *dsl.Handler, end time.Time) (context.Context, context.CancelFunc) {
	late := time.Now().Add(h.Timeout)
	switch {
	case !end.IsZero() && (h.Timeout == 0 || end.Before(late)):
		return context.WithDeadlineCause(ctx, end, timeout{h.Deadline, true})
	case h.Timeout > 0:
		return context.WithDeadlineCause(ctx, late, timeout{h.Timeout, false})
	}
	return ctx, func() {}
}

// timeout is the cause of the end of an attempt's context. Requests with the context fail with it, and callers compare
// their errors with context errors.
type timeout struct {
	time time.Duration
	all  bool
}

// Error says how long the time was.
func (t timeout) Error() string {
	if t.all {
		return fmt.Sprintf("%v (%v for all attempts)", errTimeout, t.time)
	}
	return fmt.Sprintf("%v (%v)", errTimeout, t.time)
}

// Is makes the error match context.DeadlineExceeded, and errTimeout.
func (t timeout) Is(target error) bool {
	return target == errTimeout || target == context.DeadlineExceeded
}

// Timeout implements net.Error's method.
func (t timeout) Timeout() bool { return true }

// wrongPatch returns the error in a handler's patch, for which the handler fails for good.
func wrongPatch(h *dsl.Handler, p *dsl.Patch) error {
	if h.ResourceWide && !p.Empty() {
		return errors.New("it changes its object, but runs without one: change objects with the client")
	}
	return p.Err()
}

// Ask evaluates a handler's filter.
func Ask(when dsl.Predicate, about *dsl.Subject) (holds bool, err error) {
	if broke := guard.Call("filter", func() { holds, err = when(about) }); broke != nil {
		return false, broke
	}
	return holds, err
}

// Delay computes the initial delay of a handler, at least zero. About returns the subject for a computed delay.
func Delay(d *dsl.Delay, about func() *dsl.Subject) (out time.Duration) {
	if d.From == nil {
		return d.Fixed
	}
	s := about()
	if broke := guard.Call("function", func() { out = d.From(s) }); broke != nil {
		s.Log.Error(broke, "computing initial delay failed; the handler runs without it")
		return 0
	}
	return max(out, 0)
}

// Limit computes how long an object may stay in a state.
func Limit(limit func(*dsl.Subject) (time.Duration, error), about *dsl.Subject) (out time.Duration, err error) {
	if broke := guard.Call("function", func() { out, err = limit(about) }); broke != nil {
		return 0, broke
	}
	return out, err
}

// Moment computes the time at which a handler runs.
func Moment(at func(*dsl.Subject) (time.Time, error), about *dsl.Subject) (out time.Time, err error) {
	if broke := guard.Call("function", func() { out, err = at(about) }); broke != nil {
		err = broke
	}
	if err != nil {
		return time.Time{}, err
	}
	return out, nil
}

// Waits reports whether the attempt ended because the handler waits for other objects, and its longest wait.
func Waits(err error) (most time.Duration, ok bool) {
	if err == nil || Void(err) || dsl.IsPermanent(err) {
		return 0, false
	}
	return dsl.IsWaiting(err)
}

// Contained returns the error of an action that timed out or panicked within an attempt that goes on. The action's
// changes are dropped, and others in the attempt are kept.
func Contained(err error) error { return contained{err} }

type contained struct{ error }

// Unwrap returns the action's error.
func (c contained) Unwrap() error { return c.error }

// Void reports whether the handler's changes are dropped, because it timed out or panicked.
func Void(err error) bool {
	_, within := errors.AsType[contained](err)
	return !within && (errors.Is(err, errTimeout) || errors.Is(err, guard.ErrBroke))
}

// JoinPatchError returns the error of an attempt whose patch may be wrong. A wrong patch replaces success and waiting. If it is
// wrong for good, it also replaces another error, because the handler would write it again.
func JoinPatchError(err, wrong error) error {
	if _, waits := Waits(err); wrong != nil && (err == nil || waits || dsl.IsPermanent(wrong)) {
		return wrong
	}
	return err
}

// Home returns the object's namespace, or the name of a Namespace. It is empty for other cluster-scoped objects, and for
// nil.
func Home(o *unstructured.Unstructured) string {
	if o == nil {
		return ""
	}
	if kind := o.GroupVersionKind(); kind.Kind == "Namespace" && kind.Group == "" {
		return o.GetName()
	}
	return o.GetNamespace()
}

// Note returns the record of a handler after an attempt with an error, nil for none. Unreached reports whether the error
// only says that the server is away. If the server rejects requests because the given namespace is being deleted, the
// handler is not tried again.
func Note(h *dsl.Handler, r progress.Record, err error, now time.Time, namespace string, unreached func(error) bool) progress.Record {
	most, waits := Waits(err)
	switch {
	case err == nil:
		return r.Succeed()
	case waits:
		return r.Wait(h, err, most, now)
	case unreached(err):
		return r.Unreached(h, err, now)
	case errors.Is(err, errEnded) || notfound.IsNamespaceTerminating(err, namespace):
		return r.End(h, err, now)
	}
	return r.Fail(h, err, now)
}

// Outcome returns the outcome of an attempt for metrics. Done: the handler is through; failed: for good.
func Outcome(err error, done, failed bool) ops.Outcome {
	switch {
	case err == nil:
		return ops.Success
	case done && !failed:
		return ops.Ignored
	case errors.Is(err, guard.ErrBroke):
		return ops.Panic
	case failed:
		return ops.Failed
	case errors.Is(err, errTimeout):
		return ops.Timeout
	}
	if _, waits := Waits(err); waits {
		return ops.Waiting
	}
	return ops.Retry
}

// Recall adds the state that a handler handled last, and the difference to the present one, to a subject; nothing if old
// is nil.
func Recall(of *dsl.Subject, r progress.Handler, old map[string]any, now *progress.Snapshot) {
	if old == nil {
		return
	}
	of.Old = runtime.DeepCopyJSON(old)
	changes := progress.Diff(of.Old, runtime.DeepCopyJSON(now.Kept(r.View)))
	paths := r.View.Fields
	if len(paths) == 0 {
		of.Diff = changes
	}
	for _, path := range paths {
		of.Diff = append(of.Diff, progress.Within(changes, path)...)
	}
}
