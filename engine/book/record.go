// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	retry "github.com/handwerk-dev/handwerk/engine/backoff"
)

// maxMessage bounds the error text kept in a record, in bytes: it lies on the object.
const maxMessage = 200

// Record is one handler's progress with one cause on one object.
type Record struct {
	// Cause is what the handler runs for.
	Cause dsl.Cause `json:"cause,omitempty"`
	// View is the digest of what the handler looked at in its last attempt.
	View string `json:"view,omitempty"`
	// Attempts counts the attempts so far.
	Attempts int `json:"attempts,omitempty"`
	// Began is when the first attempt began of a handler that has a deadline; zero for others.
	Began time.Time `json:"began,omitzero"`
	// Due is when the next attempt may begin; zero means now.
	Due time.Time `json:"due,omitzero"`
	// Done: the handler has finished, by success or by failing for good.
	Done bool `json:"done,omitempty"`
	// Failed: it has failed for good.
	Failed bool `json:"failed,omitempty"`
	// Message is the last error, shortened.
	Message string `json:"message,omitempty"`
	// Step is how many of the handler's steps are done; see dsl.Request.
	Step int `json:"step,omitempty"`
	// Waiting: the last attempt found that something is to come first. A process that begins anew looks
	// again at once.
	Waiting bool `json:"waiting,omitempty"`
	// Unasked is how often in a row the filter of a sub-handler could not be asked.
	Unasked int `json:"-"`
	// Missed is how often in a row an attempt found no server.
	Missed int `json:"-"`
	// Parts is how far its sub-handlers have come, nil where none has begun.
	Parts *Parts `json:"parts,omitempty"`
	// Early is when the next attempt is due of a handler that has a look before that; see Peek. It is
	// zero for others.
	Early time.Time `json:"-"`
}

// For returns the record to go on with for this cause and view: the same, or a new one when
// something else is to be done, which cuts any wait short.
func (r Record) For(c dsl.Cause, view string) Record {
	if r.Cause == c && r.View == view {
		return r
	}
	return Record{Cause: c, View: view}
}

// Unanswered notes that the filter of a sub-handler could not be asked. It is asked again after its back-off, and that is no attempt.
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

// Waits returns how long the next attempt must still wait; zero or less means that it is due.
func (r Record) Waits(now time.Time) time.Duration {
	if r.Due.IsZero() {
		return 0
	}
	return r.Due.Sub(now)
}

// Start notes that an attempt begins: the first one begins the time of a handler with a deadline.
func (r Record) Start(h *dsl.Handler, now time.Time) Record {
	if h.Deadline > 0 && r.Began.IsZero() {
		r.Began = now.Round(0) // times that are stored have no monotonic part either
	}
	return r
}

// Ends returns when the time of all attempts is over of a handler that has begun; zero means never.
func (r Record) Ends(h *dsl.Handler) time.Time {
	if h.Deadline <= 0 || r.Began.IsZero() {
		return time.Time{}
	}
	return r.Began.Add(h.Deadline)
}

// Overdue returns why no attempt may begin any more, nil when one may.
func (r Record) Overdue(h *dsl.Handler, now time.Time) error {
	if end := r.Ends(h); end.IsZero() || now.Before(end) {
		return nil
	}
	last := ""
	if r.Message != "" {
		last = ": " + r.Message
	}
	return dsl.Permanent(fmt.Errorf("the deadline (%s) passed%s", h.Deadline, last))
}

// Wait notes an attempt that was none: the handler waits for what others do, at most for the time
// given, and not past its deadline.
func (r Record) Wait(h *dsl.Handler, reason error, most time.Duration, now time.Time) Record {
	r = r.Start(h, now)
	r.Waiting, r.Due, r.Early, r.Message = true, now.Add(most), time.Time{}, shorten(reason.Error())
	if end := r.Ends(h); !end.IsZero() && end.Before(r.Due) {
		r.Due = end
	}
	return r
}

// RetryNow returns the record of a handler that waits as one that is due now: what it waits for may
// have come. Any other is returned as it is, but for its sub-handlers that wait.
func (r Record) RetryNow() Record {
	r.Parts = r.Parts.each(Record.RetryNow)
	if r.Waiting {
		r.Due = time.Time{}
	}
	return r
}

// Later returns the record with a next attempt that does not begin before a time. A record without one stays as it is.
func (r Record) Later(at time.Time) Record {
	if !r.Done && r.Due.Before(at) {
		r.Due = at
	}
	return r
}

// Begun reports whether the handler has begun, and is not finished.
func (r Record) Begun() bool { return !r.Done && (r.Waiting || r.Attempts > 0 || r.Step > 0) }

// Past is how many steps and sub-handlers are done, which the next attempt leaves out.
func (r Record) Past() int {
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

// Worst is how many attempts have failed of what is not done: of the handler, or of that of its sub-handlers which failed most
// often.
func (r Record) Worst() int {
	n := r.Attempts
	if r.Parts == nil {
		return n
	}
	for _, part := range r.Parts.Of {
		if !part.Done && (!part.Waiting || part.Parts != nil) {
			n = max(n, part.Worst())
		}
	}
	return n
}

// Granted returns the record of a handler that lacked a right, which was given.
func (r Record) Granted() Record {
	if !r.Done {
		r.Due, r.Early = time.Time{}, time.Time{}
		r.Parts = r.Parts.each(Record.Granted)
	}
	return r
}

// Bare reports whether the record says nothing but that the handler waits.
func (r Record) Bare() bool {
	return r.Waiting && r.Attempts == 0 && r.Step == 0 && r.Began.IsZero() && r.Parts == nil
}

// Succeed notes a successful attempt.
func (r Record) Succeed() Record {
	return Record{Cause: r.Cause, View: r.View, Attempts: r.Attempts + 1, Done: true}
}

// refusedMost bounds the wait after a handler was refused for lack of a right, or by a policy. It is for rights that only
// handlers know of, as that to create a child; a handler that waits for others is woken when they are given.
const refusedMost = 30 * time.Second

// Fail notes a failed attempt and decides what follows: another attempt at Due, or none when the
// error is permanent, the handler's retries are used up, or its deadline would pass before. One that was refused for lack
// of a right, or by a policy, waits 30 seconds at most, or the handler's first back-off, unless it asked for longer. An error that the handler ignores is a success.
func (r Record) Fail(h *dsl.Handler, err error, now time.Time) Record {
	wait, asked := dsl.IsTemporary(err)
	if h.Errors == dsl.ErrorsIgnore && !asked && !dsl.IsPermanent(err) {
		return r.Succeed()
	}
	r = r.Start(h, now).fail(h, err, now, wait, asked)
	if most := now.Add(max(refusedMost, h.Backoff.Initial)); !asked && retry.Refused(err) && r.Due.After(most) {
		r.Due = most
	}
	return r.inTime(h, err, now)
}

// inTime returns the record after an attempt that failed with an error: failed for good where the deadline passes before the next.
func (r Record) inTime(h *dsl.Handler, err error, now time.Time) Record {
	if end := r.Ends(h); !r.Done && !end.IsZero() && !r.Due.Before(end) {
		r = r.fail(h, dsl.Permanent(fmt.Errorf("%w; another attempt would begin after the deadline (%s)", err, h.Deadline)), now, 0, false)
		r.Attempts-- // it was one
	}
	return r
}

// Unreached notes an attempt that failed because the API server was away. All of these in a row use up one retry at most, and the
// wait is bounded as that of one that was refused. A handler without retries, or whose errors are no reason to try again, has failed as ever.
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

// Backoff returns how long to wait after so many failures: it doubles from Initial to Max and adds up to a fifth, so that objects
// that failed together do not come back together.
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
	message = strings.ToValidUTF8(message, "?")
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + "…"
}

// Lasting returns what of the record the next process must know: not until when the handler waits, for it
// looks at once, as it may have missed the coming of what it waits for.
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

// Peek lets a handler whose next attempt is not due have a look, because something has happened that it
// may have waited for. If it fails again, that was no attempt.
func (r Record) Peek(now time.Time) Record {
	r.Parts = r.Parts.each(func(part Record) Record { return part.Peek(now) })
	if r.Done || !r.Due.After(now) {
		return r
	}
	if !r.Waiting {
		r.Early = r.Due
	}
	r.Due = time.Time{}
	return r
}
