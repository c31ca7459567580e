// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/conditions"
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/fence"
	"github.com/handwerk-dev/handwerk/engine/health"
	"github.com/handwerk-dev/handwerk/engine/ops"
	"github.com/handwerk-dev/handwerk/engine/outage"
	"github.com/handwerk-dev/handwerk/engine/plan"
	"github.com/handwerk-dev/handwerk/engine/progress"
)

// manyFailures is the failed attempt from which on a handler is said to fail where its object is looked
// at: the first ones are often over in a moment.
const manyFailures = 3

// fails reports whether a record is that of a handler that failed for good, or many times.
func fails(r progress.Record) bool { return r.Failed || !r.Done && r.Attempts >= manyFailures }

// complain says in the log and on the object that an attempt failed.
func (p *pass) complain(log logr.Logger, j *plan.Job, before progress.Record, err error) {
	p.complainInLog(log, j, before, err)
	if p.whole() || !fails(j.Record) || !j.Record.Failed && unanswered(err) {
		return // without an object there is nothing that an Event could be about, and without a server nobody who takes it
	}
	reason, note := conditions.Retried, fmt.Sprintf("Handler %s keeps failing, and is tried again: %s", j.Reader.ID, j.Record.Message)
	if j.Record.Failed {
		reason, note = conditions.Failed, fmt.Sprintf("Handler %s failed for good after %s: %s", j.Reader.ID, attempts(j.Record.Attempts), j.Record.Message)
	}
	if j.Cause == dsl.Delete && !j.Reader.Release && !p.gone {
		reason, note = "DeletionHeld", "Deletion is held: "+strings.ToLower(note[:1])+note[1:]
	}
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
	p.memory.troubles.Failed(j.Reader.ID, told)
	switch {
	case j.Record.Failed:
		log.Error(err, "handler failed for good")
	case told:
		log.Info("handler will be tried again", dsl.LogWarning, true, "error", err.Error(), "again", again)
	default:
		log.V(1).Info("handler will be tried again", "error", err.Error(), "again", again)
	}
}

// said reports whether an error is one of which the log tells once for all: nobody answers, this process
// does not lead, or a right is missing, to a feed or to others.
func (e *Engine) said(err error) bool {
	if unread, is := errors.AsType[*feed.UnreadError](err); is && unread.Phase == health.Forbidden {
		return true // the feed tells
	}
	return unanswered(err) || errors.Is(err, fence.ErrNotLeading) || e.access.Told(err) || e.outages.Covers(err)
}

// unanswered reports whether an error says that the API server did not answer, also to a feed.
func unanswered(err error) bool {
	if unread, is := errors.AsType[*feed.UnreadError](err); is && unread.Phase == health.Faulty {
		return true // the feed tells
	}
	return outage.Unanswered(err)
}

func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

// recordOf is the handler's record as this pass leaves it. Progress of one that has nothing to do any
// more is over, but not that it failed for good.
func (p *pass) recordOf(r book.Reader) progress.Record {
	if j := p.jobs.Of(r); j != nil {
		return j.Record
	}
	e := p.ledger.Entry(r)
	if e.Try.Failed || e.Lost == "" {
		return progress.Record{Failed: e.Try.Failed, Message: e.Try.Message}
	}
	return progress.Record{Failed: true, Message: "it failed for good"}
}

// standing is how an object stands after this pass. Held: a handler keeps it from being deleted.
func (p *pass) standing(held bool) ops.Standing {
	if held {
		return ops.Held
	}
	out := ops.Ready
	for _, reader := range p.r.rules.readers {
		switch r := p.recordOf(reader); {
		case p.memory.filters.Of(reader.Handler) != "", r.Failed, !r.Done && r.Attempts > 0 && !r.Waiting:
			return ops.Failing
		case r.Waiting:
			out = ops.Waits
		}
	}
	return out
}

// stands publishes how the pass leaves its object.
func (p *pass) stands(held bool) {
	if p.gone {
		return // the key may be that of another object
	}
	p.memory.troubles.Mended(p.log(), passItself, "pass was finished again")
	p.r.box.Finished(p.key, p.standing(held))
}
