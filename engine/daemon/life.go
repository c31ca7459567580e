// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/guard"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/attempt"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/cached"
	"github.com/handwerk-dev/handwerk/engine/ops"
	"github.com/handwerk-dev/handwerk/engine/patch"
	"github.com/handwerk-dev/handwerk/engine/transport"
)

// manyFailures is the run from which on an Event says that a daemon keeps failing: the first ones are often over in a
// moment.
const manyFailures = 3

// life is one daemon of one object, from its start to its end, with all its runs.
type life struct {
	crew    *Crew
	handler *dsl.Handler
	key     cache.ObjectName
	uid     types.UID
	memo    *dsl.Memo
	// voice is the text with which it fails.
	voice attempt.Voice
	// ctx is that of the daemon's code, which is ended when it is to stop.
	ctx  context.Context
	tell context.CancelCauseFunc
	// limit is what its writes are made in, until cut ends them.
	limit context.Context
	cut   context.CancelFunc
	// changes are the daemon's, and news those of its engine: both get a value with a version that is news.
	changes, news chan struct{}
	// writing is held by a write, of which there is one at a time.
	writing sync.Mutex

	// The lock of the crew guards what follows.
	why   dsl.Stop // it is to stop; empty while it is not
	told  time.Time
	timer *time.Timer // ends its time to stop
	late  bool        // that time is over, and it has not ended
	done  bool        // it is not to be run again
	ended bool
	// last is the object as the cache has shown it last; tree is that of one of which caches have the key alone.
	last *cached.Object
	tree *unstructured.Unstructured
	// written is the object as the daemon has written it last, or the pass that started it, until the cache shows it.
	written *unstructured.Unstructured
	// knows is the version up to which changes are no news to the daemon.
	knows string
	// seen is a digest of what the daemon looks at, as it has seen it last, or left it.
	seen    string
	ignored []uint64
	// sending: a write is under way. Came is the newest version of which an event has told since it is.
	sending bool
	came    string
}

func newLife(c *Crew, key cache.ObjectName, uid types.UID, h *dsl.Handler) *life {
	l := &life{crew: c, handler: h, key: key, uid: uid, changes: make(chan struct{}, 1), news: make(chan struct{}, 1)}
	l.ctx, l.tell = context.WithCancelCause(context.WithoutCancel(c.term))
	l.limit, l.cut = context.WithCancel(context.WithoutCancel(c.term))
	return l
}

// stopLocked tells the daemon to stop, once.
func (l *life) stopLocked(why dsl.Stop) {
	if l.why != "" || l.ended {
		return
	}
	l.why, l.told = why, time.Now()
	l.tell(why)
	within := cmp.Or(l.handler.Daemon.StopWithin, l.crew.settings.Grace)
	l.timer = time.AfterFunc(within, func() { l.overstay(within) })
}

// overstay is the end of the time to stop.
func (l *life) overstay(within time.Duration) {
	l.crew.mu.Lock()
	ended := l.ended
	l.late = !ended
	why := l.why
	l.crew.mu.Unlock()
	if ended {
		return
	}
	l.cut()
	l.log().Info("daemon was told to stop and still runs; its object does not wait for it any more", logmark.Warning, true,
		"reason", string(why), "stopWithin", within.String())
	l.crew.settings.Events.Warn(l.Newest(), l.handler.ID, "DaemonStillRuns",
		fmt.Sprintf("Daemon %s was told to stop %s ago (%s) and still runs; nothing waits for it any more", l.handler.ID, within, why))
	l.crew.settings.Host.Look(l.key)
}

// first is the record of a daemon that has not failed.
func first() book.Record { return book.Record{Cause: dsl.Running} }

// live runs the daemon until it is to stop, or is done.
func (l *life) live(delay time.Duration) {
	l.log().V(1).Info("daemon begins", "initialDelay", delay.String())
	l.goOn(first(), l.sleep(delay))
}

// goOn runs the daemon again and again. Where its code calls runtime.Goexit, another goroutine goes on: a daemon has one
// goroutine at any time.
func (l *life) goOn(record book.Record, goesOn bool) {
	began, returned := time.Now(), false
	defer func() {
		if returned {
			l.end()
			return
		}
		l.crew.running.Go(func() { l.goOn(l.ran(record, guard.Exited("daemon"), began)) })
	}()
	for goesOn {
		began = time.Now()
		err := l.run(record.Attempts+1, l.log().WithValues("attempt", record.Attempts+1))
		record, goesOn = l.ran(record, err, began)
	}
	returned = true
}

// ran judges a run that has ended, and waits until the next one is due. It reports whether there is to be one.
func (l *life) ran(record book.Record, err error, began time.Time) (_ book.Record, goesOn bool) {
	log := l.log().WithValues("attempt", record.Attempts+1)
	if time.Since(began) > max(cmp.Or(l.handler.Backoff.Max, dsl.DefaultBackoffMax), l.handler.Backoff.Initial) {
		record = first()
	}
	if record = l.judge(log, record, err, time.Since(began)); record.Done {
		return record, false
	}
	changed, goesOn := l.rest(record.Due, began.Add(betweenChanges))
	if changed {
		record = first()
	}
	return record, goesOn
}

// sleep waits, and reports whether the daemon is to run then.
func (l *life) sleep(d time.Duration) bool {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.ctx.Done():
		}
	}
	return l.ctx.Err() == nil
}

// run is one run. Its span ends with it, or when the time to stop is over.
func (l *life) run(count int, log logr.Logger) error {
	span := transport.NewSpan(l.crew.settings.Host.Held)
	span.Begin(l.limit)
	defer span.End()
	s := &session{life: l, span: span, log: log}
	object := s.Current()
	r := &dsl.DaemonRequest{Live: s, Object: object, Attempt: count, Log: log, Patch: dsl.NewPatch(), Memo: l.memo}
	l.crew.settings.Host.Equip(Run{Handler: l.handler, Key: l.key, Object: object, Daemon: l, Span: span, Log: log}, r)
	err := l.call(r)
	if attempt.Void(err) {
		return err
	}
	switch flushed := r.Flush(l.limit); {
	case flushed == nil, errors.Is(flushed, patch.ErrGone):
		return err
	case err == nil:
		return fmt.Errorf("sending what the daemon wants: %w", flushed)
	default:
		log.V(1).Info("what the daemon wants could not be sent", "error", flushed.Error())
		return err
	}
}

// call calls the code. A panic is an error.
func (l *life) call(r *dsl.DaemonRequest) (err error) {
	if broke := guard.Here(func() { err = l.handler.Daemon.Func(l.ctx, r) }); broke != nil {
		r.Log.Error(broke, "daemon panicked", "stack", string(guard.Stack(broke)))
		return broke
	}
	return err
}

// judge says what has come of a run, and when the next one is. The record is done when there is none.
func (l *life) judge(log logr.Logger, before book.Record, err error, took time.Duration) book.Record {
	stopped := l.ctx.Err() != nil
	after := before.Succeed()
	if most, waits := attempt.Waits(err); waits {
		after = before.Wait(l.handler, err, most, time.Now())
	} else if err != nil {
		after = before.Fail(l.handler, err, time.Now())
	}
	if stopped && err != nil {
		log.V(1).Info("daemon stopped with an error", "reason", context.Cause(l.ctx).Error(), "error", err.Error())
		err = nil // it was told to, and mostly says so
	}
	l.crew.settings.Metrics.Handled(ops.HandlerRun{
		Resource: l.crew.settings.Resource, Handler: l.handler.ID, Cause: dsl.Running,
		Outcome: attempt.Outcome(err, after.Done && err == nil, after.Failed), Duration: took,
	})
	if stopped {
		return before.Succeed()
	}
	l.say(log, after, err)
	if after.Done {
		l.crew.mu.Lock()
		l.done = true
		l.crew.mu.Unlock()
	}
	return after
}

// say says in the log, and on the object, how a run has ended.
func (l *life) say(log logr.Logger, r book.Record, err error) {
	again := max(0, time.Until(r.Due)).Round(time.Millisecond).String()
	warn := func(reason, note string) { l.crew.settings.Events.Warn(l.Newest(), l.handler.ID, reason, note) }
	f := attempt.Failure{Log: log, Key: l.key, Handler: l.handler.ID, Err: err, Line: "daemon will be run again", Due: r.Due}
	switch {
	case err == nil:
		l.voice.Over()
		log.V(1).Info("daemon is done")
	case r.Waiting:
		log.V(1).Info("daemon waits", "reason", err.Error(), "timeout", again)
	case r.Failed:
		f.Final = "daemon failed for good"
		l.crew.settings.Texts.Say(f, nil) // it ends now, and others may fail so
		warn("DaemonFailed", fmt.Sprintf("Daemon %s failed for good: %s", l.handler.ID, r.Message))
	case l.crew.settings.Host.Logged(err):
		f.Values = []any{"retryAfter", again}
		f.Whisper()
	default:
		f.Values = []any{"retryAfter", again}
		l.crew.settings.Texts.Say(f, &l.voice)
		if r.Attempts >= manyFailures {
			warn("DaemonFailing", fmt.Sprintf("Daemon %s keeps failing, and is run again: %s", l.handler.ID, r.Message))
		}
	}
}

// end is the end of the daemon. The next pass knows what becomes of the object and of its daemons then.
func (l *life) end() {
	c := l.crew
	c.mu.Lock()
	l.ended = true
	if l.timer != nil {
		l.timer.Stop()
	}
	if p := c.posts[l.key]; p != nil {
		p.lives = slices.DeleteFunc(p.lives, func(other *life) bool { return other == l })
		if l.done && p.uid == l.uid {
			if p.over == nil {
				p.over = map[*dsl.Handler]bool{}
			}
			p.over[l.handler] = true
		}
		c.tidyLocked(l.key)
	}
	late, told, why := l.late, l.told, l.why
	c.mu.Unlock()
	l.tell(nil)
	l.cut()
	if l.voice.Over(); late {
		l.log().Info("daemon has stopped after all", "after", time.Since(told).Round(time.Second).String())
	} else if why != "" {
		l.log().V(1).Info("daemon stopped", "reason", string(why))
	}
	c.settings.Host.Look(l.key)
}

// changedLocked takes a version of the object that it is known to have now.
func (l *life) changedLocked(version string) {
	l.lookLocked()
	if l.written != nil && atMost(l.written.GetResourceVersion(), version) {
		l.written = nil // caught up
	}
	if l.sending {
		l.came = version // whose it is, the answer tells
		return
	}
	l.newsLocked(version)
}

// lookLocked looks at what the cache has. Where its versions have gone back, as after a restored backup, nothing counts
// that was known of later ones.
func (l *life) lookLocked() {
	o, found := l.crew.settings.Cache.Get(l.key)
	if !found || o.GetUID() != l.uid {
		return
	}
	if older(o.GetResourceVersion(), l.last.GetResourceVersion()) {
		l.written, l.knows = nil, ""
	}
	l.last = o
}

// newsLocked tells the daemon of a version that it does not know.
func (l *life) newsLocked(version string) {
	if atMost(version, l.knows) {
		return
	}
	l.knows = version
	l.signal()
}

func (l *life) signal() {
	for _, to := range []chan struct{}{l.changes, l.news} {
		select {
		case to <- struct{}{}:
		default:
		}
	}
}

// atMost reports whether a version is known not to be newer than another one.
func atMost(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order <= 0
}

// older reports whether a version is known to be older than another one.
func older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

func (l *life) log() logr.Logger {
	return l.crew.settings.Log.WithValues("namespace", l.key.Namespace, "name", l.key.Name, "handler", l.handler.ID, "cause", string(dsl.Running))
}
