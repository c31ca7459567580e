// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// blindAfter is the time without a watch after which a source counts as blind. It is longer than the waits between attempts, so a
// source that fails now and then is not blind.
const blindAfter = 30 * time.Second

// errBlind is the fault of a source whose requests neither fail nor end.
var errBlind = fmt.Errorf("no list or watch has answered for %s", blindAfter)

// State is how a source is doing.
type State struct {
	// Synced is true once the first listing is in the cache. It stays true.
	Synced bool
	// Fault is the last failure to list or watch, if no success has followed; else nil. The API machinery's predicates
	// apply. With apierrors.IsNotFound the resource does not exist; with apierrors.IsForbidden a permission is missing.
	// Meanwhile the cache stays as it was.
	Fault error
	// Stale is the time of the last complete listing or open watch. Zero while a watch is open, and before the first
	// listing.
	Stale time.Time
	// Blind is true when Stale is more than half a minute ago. The cache may be out of date then.
	Blind bool
	// LastEvent is the time of the last listing, event or bookmark. Most servers send a bookmark every minute. Zero before
	// the first.
	LastEvent time.Time
	// Failures counts the failures to list or watch since the source was opened.
	Failures int
}

// health keeps the state of one source. A blind source has a fault even if no request has failed.
//
// Faults of lists and of watches are separate. Otherwise a source that may be listed and not watched would recover and
// fail with each retry.
type health struct {
	src     Source
	log     logr.Logger
	changed func(Source, State)

	mu    sync.Mutex
	state State // its Fault comes from list and watch
	list  error
	watch error
	// breaks counts the streams that broke in a row. A single one may be a server that shuts down.
	breaks int
	// dim is the timer that makes the state blind; nil before the first listing.
	dim *time.Timer

	// notifying is held while changed runs, so that calls come one by one and the last one has
	// the last state.
	notifying sync.Mutex
	notified  State
	ended     bool
}

func newHealth(src Source, log logr.Logger, changed func(Source, State)) *health {
	return &health{src: src, log: log, changed: changed}
}

// listed records how a list request ended.
func (h *health) listed(err error) {
	h.update(func() {
		if h.list = h.judge("listing", h.list, err); err == nil {
			h.state.LastEvent = time.Now()
			h.staleLocked()
		}
	})
}

// followed records that a watch is open which delivers all events after the last listing.
func (h *health) followed() {
	h.update(func() {
		h.state.Stale, h.state.Blind = time.Time{}, false
		if h.dim != nil {
			h.dim.Stop()
		}
	})
}

// lost records that the watch has ended.
func (h *health) lost() { h.update(h.staleLocked) }

// staleLocked starts the time without a watch.
func (h *health) staleLocked() {
	h.state.Stale, h.state.Blind = time.Now(), false
	if h.dim != nil {
		h.dim.Reset(blindAfter)
		return
	}
	h.dim = time.AfterFunc(blindAfter, func() {
		h.update(func() { h.state.Blind = !h.state.Stale.IsZero() && time.Since(h.state.Stale) >= blindAfter })
	})
}

// opened records the result of a watch request. After broken streams, an open stream alone does not end the fault.
func (h *health) opened(err error) {
	h.update(func() {
		if err != nil {
			h.breaks = 0
		}
		if h.breaks == 0 {
			h.watch = h.judge("watching", h.watch, err)
		}
	})
}

// flowed records that a stream works: it brought an event, or it has been open for a while.
func (h *health) flowed(event bool) {
	h.update(func() {
		h.breaks, h.watch = 0, nil
		if event {
			h.state.LastEvent = time.Now()
		}
	})
}

// broke records that a stream ended with an error.
func (h *health) broke(err error) {
	h.update(func() {
		if h.breaks++; h.breaks > 1 {
			h.watch = h.judge("watching", h.watch, err)
		}
	})
}

// missed records an error that no request returned, such as that of a malformed list.
func (h *health) missed(err error) {
	h.update(func() {
		if h.list == nil && h.watch == nil {
			h.list = h.judge("listing", nil, err)
		}
	})
}

// synced records that the first listing is in the cache.
func (h *health) synced() { h.update(func() { h.state.Synced = true }) }

// now returns the state.
func (h *health) now() State {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state
}

// end stops notifications.
func (h *health) end() {
	h.mu.Lock()
	if h.dim != nil {
		h.dim.Stop()
	}
	h.mu.Unlock()
	h.notifying.Lock()
	defer h.notifying.Unlock()
	h.ended = true
}

// judge returns the fault after a request: nil after a success, the earlier fault after a routine error, else the new
// one.
func (h *health) judge(doing string, earlier, err error) error {
	if err == nil {
		return nil
	}
	if routine(err) {
		return earlier
	}
	h.state.Failures++
	now := &fault{doing: doing, src: h.src, err: err}
	if alike(earlier, now) {
		h.log.V(1).Info("source still fails", "fault", now.Error())
	}
	return now
}

func (h *health) update(change func()) {
	h.mu.Lock()
	before := h.state
	change()
	// Listing comes first: without it a watch is of no use.
	if h.state.Fault = h.list; h.list == nil {
		h.state.Fault = h.watch
	}
	if h.state.Fault == nil && h.state.Blind {
		h.state.Fault = &fault{doing: "following", src: h.src, err: errBlind}
	}
	same := before.same(h.state)
	h.mu.Unlock()
	if !same {
		h.notify()
	}
}

func (h *health) notify() {
	h.notifying.Lock()
	defer h.notifying.Unlock()
	now := h.now()
	if h.ended || h.notified.same(now) {
		return
	}
	switch {
	case alike(h.notified.Fault, now.Fault) && h.notified.Synced == now.Synced && now.Blind:
		h.log.V(1).Info("source gets no events; its cache may be stale")
	case alike(h.notified.Fault, now.Fault) && h.notified.Synced == now.Synced:
		h.log.V(1).Info("source gets events again")
	case alike(h.notified.Fault, now.Fault):
		h.log.V(1).Info("source is synced")
	case now.Fault == nil:
		h.log.V(1).Info("source works again")
	default:
		h.log.V(1).Info("source fails", "fault", now.Fault.Error()) // the owners log it at their own level
	}
	h.notified = now
	if h.changed != nil {
		h.changed(h.src, now)
	}
}

func (s State) same(t State) bool {
	return s.Synced == t.Synced && s.Blind == t.Blind && alike(s.Fault, t.Fault)
}

// fault is the type of all errors in State.Fault.
type fault struct {
	doing string
	src   Source
	err   error
}

// Error leaves out the request's URL, which is long and different each time.
func (f *fault) Error() string {
	why := f.err
	if request, is := errors.AsType[*url.Error](why); is {
		why = request.Err
	}
	return fmt.Sprintf("%s %s: %v", f.doing, f.src, why)
}

func (f *fault) Unwrap() error { return f.err }

// alike reports whether two faults read the same to people.
func alike(a, b error) bool {
	f, _ := errors.AsType[*fault](a)
	g, _ := errors.AsType[*fault](b)
	if f == nil || g == nil {
		return f == g
	}
	return f.doing == g.doing && rootOf(f.err) == rootOf(g.err)
}

// rootOf returns the part of an error that stays the same between attempts. The ports in messages change.
func rootOf(err error) string {
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return string(reason)
	}
	for {
		cause := errors.Unwrap(err)
		if cause == nil {
			return err.Error()
		}
		err = cause
	}
}

// routine reports whether err is part of watching: the reflector starts from a newer version.
func routine(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}
