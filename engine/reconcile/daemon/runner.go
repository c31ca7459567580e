// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/guard"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/reconcile/attempt"
)

// manyFailures is the number of failures from which an Event says that a daemon keeps failing: the first failures are
// often over in a moment.
const manyFailures = 3

// Run is one run of a daemon.
type Run struct {
	Handler *dsl.Handler
	Key     cache.ObjectName
	Object  *unstructured.Unstructured
	// Daemon is the daemon that runs.
	Daemon Daemon
	Span   *transport.Span
	Log    logr.Logger
}

// Daemon is a daemon of an object.
type Daemon interface {
	// Newest returns the newest known object. It does not count as seen by the daemon.
	Newest() *unstructured.Unstructured
}

// Write is a patch of a daemon for its object, computed from the object as the daemon knows it. Ignored is as in
// [patch.Target].
type Write struct {
	Key cache.ObjectName
	// Handler is the daemon's id.
	Handler string
	Object  *unstructured.Unstructured
	Patch   *dsl.Patch
	Ignored []uint64
	Log     logr.Logger
}

// Sent is the result of a write. Contended: others have written in between.
type Sent struct {
	patch.Result
	Contended bool
	// On is the object to which the patch was applied, nil if nothing was sent.
	On *unstructured.Unstructured
}

// runner runs the code of a daemon, and judges the results.
type runner struct {
	id
	settings *Settings
	object   *object
	memo     *dsl.Memo
	// voice is the text with which the daemon fails. failed counts failures in a row.
	voice  attempt.Voice
	failed int
	// ctx is the context of the code. It ends when the daemon must stop, with the reason as its cause. limit is the
	// context of writes. It ends when the time to stop is over.
	ctx, limit context.Context
}

// log returns the log of the daemon.
func (x *runner) log() logr.Logger {
	return x.settings.Log.WithValues("namespace", x.key.Namespace, "name", x.key.Name, "handler", x.handler.ID, "cause", string(dsl.Running))
}

// attemptLog returns the log of a run.
func (x *runner) attemptLog(attempt int) logr.Logger { return x.log().WithValues("attempt", attempt) }

// heals logs that a daemon works again after failures, once a run lasts. The returned function is called at the end of
// the run.
func (x *runner) heals(lasts time.Duration) (ended func()) {
	failed := x.failed
	if failed == 0 {
		return func() {}
	}
	timer := time.AfterFunc(lasts, func() { x.log().Info("daemon works again", "failed", failed) })
	return func() { timer.Stop() }
}

// run makes one run. Its span ends with it, or when the time to stop is over.
func (x *runner) run(count int) error {
	log, span := x.attemptLog(count), transport.NewSpan(x.settings.Host.Held)
	span.Begin(x.limit)
	defer span.End()
	s := &session{object: x.object, ctx: x.ctx, span: span, log: log}
	now := s.Current()
	r := &dsl.DaemonRequest{Live: s, Object: now, Attempt: count, Log: log, Patch: dsl.NewPatch(), Memo: x.memo}
	x.settings.Host.Equip(Run{Handler: x.handler, Key: x.key, Object: now, Daemon: x.object, Span: span, Log: log}, r)
	err := x.call(r)
	if attempt.Void(err) {
		return err
	}
	switch flushed := r.Flush(x.limit); {
	case flushed == nil, errors.Is(flushed, patch.ErrGone):
		return err
	case err == nil:
		return fmt.Errorf("sending what the daemon wants: %w", flushed)
	default:
		log.V(1).Info("what the daemon wants could not be sent", "error", flushed.Error())
		return err
	}
}

// call calls the code, and turns a panic into an error.
func (x *runner) call(r *dsl.DaemonRequest) (err error) {
	if broke := guard.Here(func() { err = x.handler.Daemon.Func(x.ctx, r) }); broke != nil {
		r.Log.Error(broke, "daemon panicked", "stack", string(guard.Stack(broke)))
		return broke
	}
	return err
}

// judge returns the record after a run, and reports the run. The record is done if the daemon ends. Over: it was not
// stopped, and does not run again for the object.
func (x *runner) judge(log logr.Logger, before progress.Record, err error, took time.Duration) (_ progress.Record, over bool) {
	stopped := x.ctx.Err() != nil
	after := before.Succeed()
	if most, waits := attempt.Waits(err); waits {
		after = before.Wait(x.handler, err, most, time.Now())
	} else if err != nil {
		after = before.Fail(x.handler, err, time.Now())
	}
	if stopped && err != nil {
		log.V(1).Info("daemon stopped with an error", "reason", context.Cause(x.ctx).Error(), "error", err.Error())
		err = nil // mostly it says that it had to stop
	}
	x.settings.Metrics.Handled(ops.HandlerRun{
		Resource: x.settings.Resource, Handler: x.handler.ID, Cause: dsl.Running,
		Outcome: attempt.Outcome(err, after.Done && err == nil, after.Failed), Duration: took,
	})
	if stopped {
		return before.Succeed(), false
	}
	x.report(log, after, err)
	return after, after.Done
}

// report reports the end of a run in the log, and on the object.
func (x *runner) report(log logr.Logger, r progress.Record, err error) {
	again := max(0, time.Until(r.Due)).Round(time.Millisecond).String()
	warn := func(reason, note string) { x.settings.Events.Warn(x.object.Newest(), x.handler.ID, reason, note) }
	f := attempt.Failure{Log: log, Key: x.key, Handler: x.handler.ID, Err: err, Line: "daemon will be run again", Due: r.Due}
	switch {
	case err == nil:
		x.voice.Over()
		if x.failed > 0 {
			log.Info("daemon works again", "failed", x.failed)
		}
		log.V(1).Info("daemon is done")
	case r.Waiting:
		log.V(1).Info("daemon waits", "reason", err.Error(), "timeout", again)
	case r.Failed:
		f.Final = "daemon failed for good"
		x.settings.Texts.Say(f, nil) // it ends now, and others may fail in the same way
		warn("DaemonFailed", fmt.Sprintf("Daemon %s failed for good: %s", x.handler.ID, r.Message))
	case x.settings.Host.Logged(err):
		f.Values = []any{"retryAfter", again}
		f.LogVerbose()
	default:
		x.failed++
		f.Values = []any{"retryAfter", again}
		x.settings.Texts.Say(f, &x.voice)
		if r.Attempts >= manyFailures {
			warn("DaemonFailing", fmt.Sprintf("Daemon %s keeps failing, and is run again: %s", x.handler.ID, r.Message))
		}
	}
}

// session is one run as the daemon's code sees it.
type session struct {
	object *object
	ctx    context.Context
	span   *transport.Span
	log    logr.Logger
}

var _ dsl.Live = (*session)(nil)

// Current returns the newest known object.
func (s *session) Current() *unstructured.Unstructured { return s.object.read() }

// Changes gets a value after a change of the object.
func (s *session) Changes() <-chan struct{} { return s.object.changes }

// Stop returns why the daemon must stop.
func (s *session) Stop() dsl.Stop {
	why, _ := errors.AsType[dsl.Stop](context.Cause(s.ctx))
	return why
}

// Send writes a patch.
func (s *session) Send(ctx context.Context, p *dsl.Patch) error {
	ctx, done, err := s.span.Write(ctx)
	if err != nil {
		return err
	}
	defer done()
	return s.object.send(ctx, p, s.log)
}
