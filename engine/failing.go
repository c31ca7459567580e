// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/conditions"
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/fence"
	"github.com/handwerk-dev/handwerk/engine/memory"
	"github.com/handwerk-dev/handwerk/engine/plan"
	"github.com/handwerk-dev/handwerk/engine/progress"
)

// complain says in the log and on the object that an attempt failed.
func (p *pass) complain(log logr.Logger, j *plan.Job, before progress.Record, err error) {
	p.complainInLog(log, j, before, err)
	if j.Through() || p.resourceWide() || !plan.Fails(j.Record) || !j.Record.Failed && feed.Unanswered(err) {
		return // without an object there is nothing that an Event could be about, and without a server nobody who takes it
	}
	reason, note := j.Complaint(p.gone)
	if reason == conditions.Retried && j.Warned {
		return // it has said so in words of its own
	}
	p.r.engine.events.Warn(p.object, j.Reader.ID, reason, note)
}

// complainInLog says in the log that an attempt failed. One that was no attempt, because children or related
// objects hurried it, is told when it failed otherwise than before.
func (p *pass) complainInLog(log logr.Logger, j *plan.Job, before progress.Record, err error) {
	again := max(0, time.Until(j.Record.Due)).Round(time.Millisecond).String()
	same := !before.Early.IsZero() && before.Message == j.Record.Message
	told := j.Record.Failed || !same && !p.r.engine.said(err)
	if j.Through() {
		log.Info("handler failed, which counts as success", logmark.Warning, told, "error", err.Error())
		p.memory.Troubles.Mended(log, j.Reader.ID, "handler works again")
		return
	}
	p.memory.Troubles.Failed(j.Reader.ID, told)
	switch {
	case j.Record.Failed:
		log.Error(err, "handler failed for good")
	case told:
		log.Info("handler will be tried again", logmark.Warning, true, "error", err.Error(), "retryAfter", again)
	default:
		log.V(1).Info("handler will be tried again", "error", err.Error(), "retryAfter", again)
	}
}

// said reports whether an error is one of which the log tells once for all: nobody answers, this process
// does not lead, or a right is missing, to a feed or to others.
func (e *Engine) said(err error) bool {
	return feed.Refused(err) || feed.Unanswered(err) || errors.Is(err, fence.ErrNotLeading) || e.access.Told(err) || e.outages.Covers(err)
}

// refused notes how a handler, or one of the pass's own requests, ended: whether a right was missing.
func (r *resource) refused(key cache.ObjectName, handler string, err error) {
	missing := apierrors.IsForbidden(err)
	if r.box.Refused(key, handler, missing) && !missing {
		r.engine.access.Retry()
	}
	if missing && handler == memory.Itself {
		r.own.Suspect(key.Namespace)
	}
}

// passRefused is refused for a request of the pass's own.
func (r *resource) passRefused(key cache.ObjectName, err error) { r.refused(key, memory.Itself, err) }
