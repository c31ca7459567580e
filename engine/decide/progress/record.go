// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	retry "github.com/handwerk-dev/handwerk/engine/cluster/backoff"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
)

// maxMessage limits the error text in a record in bytes, because it is stored on the object.
const maxMessage = 200

// Record is one handler's progress with one cause on one object.
type Record struct {
	// Cause is the cause for which the handler runs.
	Cause dsl.Cause `json:"cause,omitempty"`
	// View is the digest of the handler's view in its last attempt.
	View string `json:"view,omitempty"`
	// Attempts counts the attempts so far.
	Attempts int `json:"attempts,omitempty"`
	// Began is when the first attempt began, for handlers with a deadline; zero for others.
	Began time.Time `json:"began,omitzero"`
	// Due is when the next attempt may begin; zero means now.
	Due time.Time `json:"due,omitzero"`
	// Done: the handler has finished, by success or by failing for good.
	Done bool `json:"done,omitempty"`
	// Failed: it has failed for good.
	Failed bool `json:"failed,omitempty"`
	// Ended: it has failed for good because its object's namespace is being deleted. It does not hold the deletion.
	Ended bool `json:"ended,omitempty"`
	// Message is the last error, shortened.
	Message string `json:"message,omitempty"`
	// Step is how many of the handler's steps are done; see dsl.Request.
	Step int `json:"step,omitempty"`
	// Waiting: the last attempt waits for other objects. A new process tries again at once.
	Waiting bool `json:"waiting,omitempty"`
	// Unasked is how often in a row the filter of a sub-handler failed.
	Unasked int `json:"-"`
	// Missed is how often in a row an attempt did not reach the API server.
	Missed int `json:"-"`
	// Parts is the progress of the sub-handlers; nil if none has begun.
	Parts *Parts `json:"parts,omitempty"`
	// Early is the due time of the next attempt, for a handler that gets an early attempt before it; see TryEarly. It
	// is zero for others.
	Early time.Time `json:"-"`
}

// For returns the record for this cause and view: the same, or a new one if the work is different, which ends any
// wait.
func (r Record) For(c dsl.Cause, view string) Record {
	if r.Cause == c && r.View == view {
		return r
	}
	return Record{Cause: c, View: view}
}

// Unanswered notes that the filter of a sub-handler failed. It is evaluated again after its back-off. That is not
// an attempt.
func (r Record) Unanswered(h *dsl.Handler, err error, now time.Time) Record {
	r.Message = shorten(err.Error())
	if !r.Early.IsZero() {
		r.Due, r.Early = r.Early, time.Time{}
		return r
	}
	r.Unasked++
	r.Waiting, r.Due = true, now.Add(Backoff(h.Backoff, r.Unasked))
	return r
}

// Remaining returns how long the next attempt must still wait; zero or less means that it is due.
func (r Record) Remaining(now time.Time) time.Duration {
	if r.Due.IsZero() {
		return 0
	}
	return r.Due.Sub(now)
}

// Start notes that an attempt begins. The first one starts the time of a deadline.
func (r Record) Start(h *dsl.Handler, now time.Time) Record {
	if h.Deadline > 0 && r.Began.IsZero() {
		r.Began = now.Round(0) // stored times have no monotonic part either
	}
	return r
}

// Deadline returns the deadline of a handler that has begun; zero means never.
func (r Record) Deadline(h *dsl.Handler) time.Time {
	if h.Deadline <= 0 || r.Began.IsZero() {
		return time.Time{}
	}
	return r.Began.Add(h.Deadline)
}

// Overdue returns why no further attempt may begin; nil if one may.
func (r Record) Overdue(h *dsl.Handler, now time.Time) error {
	if end := r.Deadline(h); end.IsZero() || now.Before(end) {
		return nil
	}
	last := ""
	if r.Message != "" {
		last = ": " + r.Message
	}
	return dsl.Permanent(fmt.Errorf("the deadline (%s) passed%s", h.Deadline, last))
}

// Wait notes that the handler waits for other objects, at most for the time given, and not past its deadline. It
// does not count as an attempt.
func (r Record) Wait(h *dsl.Handler, reason error, most time.Duration, now time.Time) Record {
	r = r.Start(h, now)
	r.Waiting, r.Due, r.Early, r.Message = true, now.Add(most), time.Time{}, shorten(reason.Error())
	if end := r.Deadline(h); !end.IsZero() && end.Before(r.Due) {
		r.Due = end
	}
	return r
}

// EndWait returns the record of a waiting handler as due now, because the awaited object may have changed. Of other
// records, it changes only the waiting sub-handlers.
func (r Record) EndWait() Record {
	r.Parts = r.Parts.each(Record.EndWait)
	if r.Waiting {
		r.Due = time.Time{}
	}
	return r
}

// Later returns the record with its next attempt not before a time. A record without a next attempt is unchanged.
func (r Record) Later(at time.Time) Record {
	if !r.Done && r.Due.Before(at) {
		r.Due = at
	}
	return r
}

// IsUnfinished reports whether the handler has begun, and is not finished.
func (r Record) IsUnfinished() bool { return !r.Done && (r.Waiting || r.Attempts > 0 || r.Step > 0) }

// DoneParts returns the number of finished steps and sub-handlers, which the next attempt skips.
func (r Record) DoneParts() int {
	n := r.Step
	if r.Parts != nil {
		for _, part := range r.Parts.Of {
			if part.Done {
				n++
			}
		}
	}
	return n
}

// Failures returns the number of failed attempts of unfinished work: of the handler, or of the sub-handler that failed
// most often.
func (r Record) Failures() int {
	n := r.Attempts
	if r.Parts == nil {
		return n
	}
	for _, part := range r.Parts.Of {
		if !part.Done && (!part.Waiting || part.Parts != nil) {
			n = max(n, part.Failures())
		}
	}
	return n
}

// Granted returns the record after a missing right was granted.
func (r Record) Granted() Record {
	if !r.Done {
		r.Due, r.Early = time.Time{}, time.Time{}
		r.Parts = r.Parts.each(Record.Granted)
	}
	return r
}

// anew returns the record as before the first attempt. It keeps success of the handler and of its sub-handlers.
func (r Record) anew() Record {
	if r.Done && !r.Failed {
		return r
	}
	return Record{Cause: r.Cause, View: r.View, Step: r.Step, Parts: r.Parts.each(Record.anew)}
}

// onlyWaits reports whether the record only says that the handler waits.
func (r Record) onlyWaits() bool {
	return r.Waiting && r.Attempts == 0 && r.Step == 0 && r.Began.IsZero() && r.Parts == nil
}

// Succeed notes a successful attempt.
func (r Record) Succeed() Record {
	return Record{Cause: r.Cause, View: r.View, Attempts: r.Attempts + 1, Done: true}
}

// refusedMost limits the wait after a rejection for a missing right, or by a policy. It is for rights that only handlers
// use, such as the right to create a child; handlers that wait for other objects are woken when their rights are
// granted.
const refusedMost = 30 * time.Second

// Fail notes a failed attempt and decides what follows: another attempt at Due, or none if the error is permanent, the
// retries are used up, or the deadline would pass before. After a rejection for a missing right, or by a policy, the
// wait is at most 30 seconds, or the handler's first back-off, unless the handler asked for longer. An error that the
// handler ignores is a success.
func (r Record) Fail(h *dsl.Handler, err error, now time.Time) Record {
	wait, asked := dsl.IsTemporary(err)
	if h.Errors == dsl.ErrorsIgnore && !asked && !dsl.IsPermanent(err) {
		return r.Succeed()
	}
	r = r.Start(h, now).fail(h, err, now, wait, asked)
	if most := now.Add(max(refusedMost, h.Backoff.Initial)); !asked && retry.IsRejected(err) && r.Due.After(most) {
		r.Due = most
	}
	return r.inTime(h, err, now)
}

// inTime returns the record after a failed attempt: failed for good if the deadline passes before the next one.
func (r Record) inTime(h *dsl.Handler, err error, now time.Time) Record {
	if end := r.Deadline(h); !r.Done && !end.IsZero() && !r.Due.Before(end) {
		r = r.fail(h, dsl.Permanent(fmt.Errorf("%w; another attempt would begin after the deadline (%s)", err, h.Deadline)), now, 0, false)
		r.Attempts-- // the failed one counts already
	}
	return r
}

// End notes a failed attempt of a handler that can never succeed, because its object's namespace is being deleted. An
// error that the handler ignores is a success.
func (r Record) End(h *dsl.Handler, err error, now time.Time) Record {
	out := r.Fail(h, err, now)
	if out.Done && !out.Failed {
		return out
	}
	out = r.Start(h, now).fail(h, dsl.Permanent(err), now, 0, false)
	out.Ended = true
	return out
}

// Unreached notes an attempt that failed because the API server was unreachable. All such attempts in a row use up at
// most one retry, and the wait is limited as after a rejection. A handler without retries, or with another error policy
// than retry, fails as usual.
func (r Record) Unreached(h *dsl.Handler, err error, now time.Time) Record {
	if _, asked := dsl.IsTemporary(err); asked || dsl.IsPermanent(err) || h.Retries == 0 || h.Errors != "" && h.Errors != dsl.ErrorsRetry {
		return r.Fail(h, err, now)
	}
	r = r.Start(h, now)
	r.Attempts, r.Missed, r.Waiting, r.Message = max(r.Attempts, 1), r.Missed+1, false, shorten(err.Error())
	r.Due = now.Add(min(Backoff(h.Backoff, r.Missed), max(refusedMost, h.Backoff.Initial)))
	r.Early = time.Time{}
	return r.inTime(h, err, now)
}

func (r Record) fail(h *dsl.Handler, err error, now time.Time, wait time.Duration, asked bool) Record {
	r.Waiting, r.Message = false, shorten(err.Error())
	if !r.Early.IsZero() && !dsl.IsPermanent(err) && (h.Errors != dsl.ErrorsFail || asked) {
		r.Due, r.Early = r.Early, time.Time{}
		return r
	}
	r.Attempts, r.Missed, r.Early = r.Attempts+1, 0, time.Time{}
	if dsl.IsPermanent(err) || h.Errors == dsl.ErrorsFail && !asked || h.Retries != dsl.Unlimited && r.Attempts > h.Retries {
		r.Done, r.Failed, r.Step, r.Due, r.Parts = true, true, 0, time.Time{}, nil
		return r
	}
	if !asked {
		wait = Backoff(h.Backoff, r.Attempts)
	}
	r.Due = now.Add(wait)
	return r
}

// Backoff returns the wait after a number of failures: it doubles from Initial to Max and adds up to a fifth, so
// that objects that failed together are not retried together.
func Backoff(b dsl.Backoff, attempts int) time.Duration {
	initial, most := b.Initial, b.Max
	if initial == 0 {
		initial = dsl.DefaultBackoffInitial
	}
	if most == 0 {
		most = max(dsl.DefaultBackoffMax, initial)
	}
	wait := initial
	for range attempts - 1 {
		if wait >= most {
			break
		}
		wait *= 2
	}
	wait = min(wait, most)
	return wait + rand.N(wait/5+1)
}

func shorten(message string) string {
	message = strings.ToValidUTF8(why.Plainly(message), "?")
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + "…"
}

// Lasting returns the parts of the record that the next process needs. A wait is left out: the next process tries
// at once, because it may have missed the event.
func (r Record) Lasting() Record {
	r.Parts = r.Parts.each(Record.Lasting)
	if !r.Early.IsZero() {
		r.Due, r.Early = r.Early, time.Time{}
	}
	if r.Waiting {
		r.Due, r.Unasked = time.Time{}, 0
	}
	return r
}

// TryEarly makes an attempt due now whose time has not come, because an event may have ended its wait. A failure of this
// attempt does not count.
func (r Record) TryEarly(now time.Time) Record {
	r.Parts = r.Parts.each(func(part Record) Record { return part.TryEarly(now) })
	if r.Done || !r.Due.After(now) {
		return r
	}
	if !r.Waiting {
		r.Early = r.Due
	}
	r.Due = time.Time{}
	return r
}
