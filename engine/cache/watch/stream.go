// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
)

const (
	// steadyAfter is how long a stream stays open without an error before it counts as working
	// though it brought nothing.
	steadyAfter = 5 * time.Second
	// brief is the least time that a stream must be open so that the reflector takes its end for an ordinary one. It is
	// a second, and a margin because the reflector measures for itself.
	brief = 1100 * time.Millisecond
	// silentAfter is the least time after which a stream counts as silent. API servers send a bookmark a minute. A
	// server that sends them less often gets a quarter more than the longest time between two of its bookmarks.
	silentAfter = 75 * time.Second
	// usualBeat is the time between two bookmarks of an API server that has sent only one, the end of a streamed list: its
	// watch cache sends both (bookmarkFrequency in k8s.io/apiserver/pkg/storage/cacher).
	usualBeat = time.Minute
	// stalledAfter is how long a streamed list may be silent: its server has all of it at hand.
	stalledAfter = time.Minute
	// overdueAfter is how much longer a stream may be open than the server was asked to keep it.
	overdueAfter = time.Minute
)

// errStalled is the error of a streamed list that stopped before its end.
var errStalled = fmt.Errorf("the listing did not go on for %s", stalledAfter)

// errSilent is the error of a second silent stream in a row. A watch is silent when it begins at a version that the server has not
// reached; a listing shows that.
var errSilent = errors.New("two watches in a row were silent")

// errBack ends a stream that was opened before an alarm, or that shows older versions than it did before.
var errBack = apierrors.NewResourceExpired("the server's versions have gone back")

// errBrief is the error of a stream that ends as soon as it begins.
var errBrief = errors.New("the server ended the watch at once")

// stream is a watch whose events are noted as they pass.
type stream struct {
	seen  *observer
	inner watch.Interface
	out   chan watch.Event
	// listing is true while the events belong to a streamed list. The reflector handles errors then.
	listing bool
	// limit is the time after which a stream without bookmarks is closed; zero for never. A proxy that has lost its server
	// sends nothing, and its silence looks like that of a server without changes.
	limit         time.Duration
	opened, begun time.Time
	// any is true after the first event; heard is the time of the last one. Marked is the time of the last bookmark.
	// Before the first, both are the time when the stream began or a streamed list was complete.
	any           bool
	heard, marked time.Time
	// filled is true if the stream began with a list, and all of it came.
	filled bool

	once    sync.Once
	stopped chan struct{}
}

// ResultChan returns the channel that the events come through.
func (s *stream) ResultChan() <-chan watch.Event { return s.out }

// Stop ends the stream, even if its reader has stopped reading.
func (s *stream) Stop() {
	s.once.Do(func() { close(s.stopped) })
	s.inner.Stop()
}

func (s *stream) run(ctx context.Context) {
	defer close(s.out)
	s.opened = time.Now()
	s.begun = s.opened
	s.heard, s.marked = s.begun, s.begun
	err := s.pass(ctx)
	s.inner.Stop()
	s.seen.ended(s)
	if err == nil && !s.any && time.Since(s.begun) < brief {
		err = errBrief
	}
	if err == nil || s.listing || ctx.Err() != nil {
		return
	}
	s.seen.hold(err)
	s.linger()
}

// pass forwards events until the stream ends, and returns the error that ended it. The next request returns that error to the
// reflector, because only the error of a request makes the reflector call informer.failed.
func (s *stream) pass(ctx context.Context) error {
	h := s.seen.health
	steady, silent := time.NewTimer(steadyAfter), time.NewTimer(s.patience())
	turned := s.turned()
	defer steady.Stop()
	defer silent.Stop()
	overdue := s.overdue()
	for {
		select {
		case <-s.stopped:
			return nil
		case <-turned:
			return errBack
		case <-steady.C:
			h.flowed(false)
		case <-silent.C:
			if over, err := s.silent(); over {
				return err
			}
		case <-overdue:
			if s.overstayed() {
				return nil
			}
		case event, open := <-s.inner.ResultChan():
			if !open {
				return nil
			}
			listing := s.listing
			if over, err := s.forward(ctx, event); over {
				return err
			}
			if listing && !s.listing {
				turned = s.turned()
			}
			if wait := s.patience(); wait > 0 {
				silent.Reset(wait)
			}
		}
	}
}

// turned returns a channel that is closed when the source has to list again; nil for a stream that lists.
func (s *stream) turned() <-chan struct{} {
	if s.listing {
		return nil
	}
	return s.seen.era.turned()
}

// forward records an event and passes it on. It reports whether the stream is over, and the error that
// ended it.
func (s *stream) forward(ctx context.Context, event watch.Event) (over bool, err error) {
	if event.Type == watch.Error && ctx.Err() != nil {
		return false, nil // we have ended the request, which is not an error
	}
	version, err := s.note(event)
	if err != nil && !s.listing {
		return true, err
	}
	select {
	case s.out <- event:
		if !s.listing {
			s.seen.era.hand(version)
		}
		return false, nil
	case <-s.stopped:
		return true, nil
	}
}

// overdue returns a channel that fires when the server should have ended the stream; nil if there is no such time.
func (s *stream) overdue() <-chan time.Time {
	if s.limit <= 0 {
		return nil
	}
	return time.After(s.limit)
}

// overstayed is called when the server should have ended the stream. It reports whether to end the stream now: a stream with
// bookmarks goes on, because missing bookmarks would show a broken connection.
func (s *stream) overstayed() bool {
	if s.patience() > 0 {
		return false
	}
	s.seen.health.log.Info("watch outlasted its timeout; another one is opened", logmark.Warning, true, "after", s.limit.String())
	return true
}

// silent is called when no event came in time, and reports whether to end the stream. The error is that of a stream that never
// delivered an event.
func (s *stream) silent() (over bool, err error) {
	if s.patience() == 0 {
		return false, nil
	}
	if s.listing {
		s.seen.health.listed(errStalled)
		return true, errStalled
	}
	log := s.seen.health.log
	if !s.seen.bookmarks.came() {
		log = log.V(1) // there may be nothing wrong
	}
	log.Info("watch got no bookmark in time; another one is opened", logmark.Warning, true, "since", s.heard.Format(time.RFC3339))
	if !s.any && !s.filled && !s.seen.bookmarks.distrust() {
		err = errSilent
	}
	return true, err
}

// patience returns the longest time without an event; zero as long as the server has not shown that it sends bookmarks.
func (s *stream) patience() time.Duration {
	if s.listing {
		return stalledAfter
	}
	beat := s.seen.bookmarks.beats(0)
	if beat == 0 {
		return 0
	}
	return max(beat+beat/4, silentAfter)
}

// note records an event, and returns its version. The error is the one in the event, or errBack.
func (s *stream) note(event watch.Event) (version string, err error) {
	h := s.seen.health
	if event.Type == watch.Error {
		err := apierrors.FromObject(event.Object)
		h.broke(err)
		return "", err
	}
	s.heard, s.any = time.Now(), true
	h.flowed(true)
	m, err := meta.Accessor(event.Object)
	if err != nil {
		return "", nil // the reflector reports it
	}
	version = m.GetResourceVersion()
	switch {
	case event.Type != watch.Bookmark && s.listing:
		s.seen.compare(m)
		return version, nil
	case event.Type != watch.Bookmark:
	case m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true":
		s.listed(version)
		return version, nil
	default:
		s.seen.bookmarks.beats(s.heard.Sub(s.marked))
		s.marked = s.heard
	}
	if had, is := s.seen.era.before(version); is && (s.seen.back(false, s.seen.health.src, had, version) || event.Type == watch.Bookmark) {
		return version, errBack
	}
	return version, nil
}

// listed records the end of a streamed list, which is at this version.
func (s *stream) listed(version string) {
	if had := s.seen.cacheVersion(); older(version, had) {
		s.seen.back(true, s.seen.health.src, had, version)
	}
	s.seen.era.complete(version)
	s.listing, s.any, s.filled = false, false, true
	s.seen.bookmarks.expect()
	s.begun, s.marked = s.heard, s.heard
	s.seen.health.listed(nil)
	s.seen.health.followed()
}

// linger waits until the stream is old enough for the reflector to count it as successful.
func (s *stream) linger() {
	timer := time.NewTimer(brief - time.Since(s.begun))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.stopped:
	}
}

// early is how much sooner than asked a server may end a watch that still ends in time.
const early = 2 * time.Second

// early reports whether a watch that ends now ends before its time.
func (s *stream) early() bool {
	return s.limit == 0 || time.Since(s.opened) < s.limit-overdueAfter-early
}
