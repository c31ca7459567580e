// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/attempt"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/inbox"
	"github.com/handwerk-dev/handwerk/engine/pass"
	"github.com/handwerk-dev/handwerk/engine/transport"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// complain says in the log and on the object that an attempt failed.
func (p *run) complain(log logr.Logger, j *pass.Job, before book.Record, err error) {
	p.memory.Troubles.Complain(p.r.texts, attempt.Attempt{
		Failure: p.failure(log, j.Reader.ID, err), Before: before, After: j.Record, Covered: p.r.engine.said(err),
	})
	p.warn(j, err)
}

// failure is one of a handler, for the log.
func (p *run) failure(log logr.Logger, handler string, err error) attempt.Failure {
	f := attempt.Failure{Log: log, Handler: handler, Err: err}
	if !p.resourceWide() {
		f.Key = p.key
	}
	return f
}

// warn says on the object that a handler fails, or one of its sub-handlers.
func (p *run) warn(j *pass.Job, err error) {
	if j.Through() || p.resourceWide() || !pass.Fails(j.Record) || !j.Record.Failed && feed.Unanswered(err) {
		return // without an object there is nothing that an Event could be about, and without a server nobody who takes it
	}
	reason, note := j.Complaint(p.gone)
	if reason == pass.Retried && j.Warned {
		return // it has said so in words of its own
	}
	p.r.engine.events.Warn(p.object, j.Reader.ID, reason, note)
}

// sayWait says in the log that a handler has waited for long, or does not wait any more. It runs beside passes.
func (r *resource) sayWait(w inbox.Wait) {
	log := r.log
	if r.scheduleOf(w.Key) == nil {
		log = log.WithValues("namespace", w.Key.Namespace, "name", w.Key.Name)
	}
	if w.Handler != "" {
		log = log.WithValues("handler", w.Handler)
	}
	if w.Over {
		log.Info("no longer "+w.Reason, "lasted", w.Lasted.Round(time.Second).String())
		return
	}
	log.Info(w.Reason)
}

// said reports whether the log has one line for all errors of this kind: no server answers, this process does not
// lead, a right is missing, to a feed or to others, or versions have gone back.
func (e *Engine) said(err error) bool {
	silent := transport.Unanswered(err) && e.outages.Logged()
	return silent || feed.Unread(err) || errors.Is(err, transport.ErrNotLeading) || e.access.Told(err) || e.outages.Covers(err) || watch.IsBack(err)
}

// unreached reports whether an error is one of the outage that the log tells of: an attempt that ends so says nothing of the
// handler.
func (e *Engine) unreached(err error) bool { return feed.Unanswered(err) && e.outages.Away() }

// refused notes how a handler, or one of the pass's own requests, ended: whether a right was missing, or the server.
func (r *resource) refused(key cache.ObjectName, handler string, err error) {
	missing := err != nil && apierrors.IsForbidden(err)
	again := missing || feed.Unanswered(err)
	if r.box.Refused(key, handler, again) && !again && r.engine.access.Lacks() {
		r.engine.access.Retry()
	}
	if missing && handler == pass.Itself {
		r.own.Suspect(key.Namespace)
	}
}

// passRefused is refused for a request of the pass's own.
func (r *resource) passRefused(key cache.ObjectName, err error) { r.refused(key, pass.Itself, err) }
