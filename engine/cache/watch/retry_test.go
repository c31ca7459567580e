// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// blindness lets time pass until a stream is open again, an hour at most, and returns how long it took.
func blindness(s *server) time.Duration {
	start := time.Now()
	for time.Since(start) < time.Hour {
		if _, _, open := s.counts(); open > 0 {
			break
		}
		advance(50 * time.Millisecond)
	}
	return time.Since(start)
}

func TestTheWaitAfterAnEndedWatchIsBounded(t *testing.T) {
	tests := map[string]struct {
		end  apierrors.APIStatus
		open time.Duration // how long each watch lasts
		most time.Duration
	}{
		"the server forgot the version each time":           {apierrors.NewResourceExpired("old"), 0, relistMost + brief},
		"the same, after some seconds each":                 {apierrors.NewResourceExpired("old"), 10 * time.Second, relistMost},
		"the server has an internal error each time":        {apierrors.NewInternalError(errors.New("no")), 0, retryMost + brief},
		"the server ends each watch at once, and politely":  {nil, 0, retryMost + brief},
		"the server ends each watch politely, after a time": {nil, 10 * time.Second, 0},
	}
	for name, tt := range tests {
		for client, stream := range map[string]bool{"that lists": false, "that streams lists": true} {
			t.Run(name+" to a client "+client, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newServer()
					settings := s.settings()
					if stream {
						settings.Dynamic = streaming{s.dynamic}
					}
					set := New(settings)
					defer set.Close()
					h := mustOpen(t, set, Source{GVR: foos}, ignore)
					synctest.Wait()
					for i := range 10 {
						advance(tt.open)
						s.cut(tt.end)
						synctest.Wait()
						if gap := blindness(s); gap > tt.most {
							t.Errorf("the %d. time it took %v until there was a watch again, want %v at most", i+1, gap, tt.most)
						}
						if state := h.State(); !state.Stale.IsZero() || state.Blind {
							t.Errorf("with an open watch the state is %+v", state)
						}
					}
				})
			})
		}
	}
}

func TestARetryEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		set := New(s.settings())
		defer set.Close()
		s.set(forbidden, forbidden)
		h := mustOpen(t, set, Source{GVR: foos}, ignore)
		advance(10 * time.Minute)
		s.set(nil, nil)
		h.Retry()
		synctest.Wait()
		if state := h.State(); state.Fault != nil || !state.Synced {
			t.Errorf("at once the state is %+v", state)
		}
	})
}

func TestWaitsBeginAgainAfterACalmTime(t *testing.T) {
	p := &pace{}
	for range 10 {
		p.next(forbidden)
	}
	if wait := p.next(forbidden); wait < retryMost/2 {
		t.Errorf("after ten failures the wait is %v", wait)
	}
	if wait := p.next(apierrors.NewResourceExpired("old")); wait > relistMost {
		t.Errorf("after a version that was forgotten the wait is %v", wait)
	}
	p.calm()
	if wait := p.next(forbidden); wait > retryFirst {
		t.Errorf("after a calm time the wait is %v", wait)
	}
}

func TestASourceThatReceivesNothingIsBlind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notified changes
		h := newHealth(Source{GVR: foos}, logr.Discard(), notified.on)
		h.listed(nil)
		h.followed()
		advance(time.Hour)
		if state := h.now(); state.Blind || !state.Stale.IsZero() {
			t.Errorf("with an open watch the state is %+v", state)
		}
		h.lost()
		since := time.Now()
		advance(blindAfter - 1)
		if state := h.now(); state.Blind || !state.Stale.Equal(since) {
			t.Errorf("a moment after the watch ended the state is %+v", state)
		}
		advance(1)
		if state := h.now(); !state.Blind || !errors.Is(state.Fault, errBlind) {
			t.Errorf("half a minute after the watch ended the state is %+v", state)
		}
		h.opened(forbidden)
		if state := h.now(); !state.Blind || !apierrors.IsForbidden(state.Fault) {
			t.Errorf("when the reason is known the state is %+v", state)
		}
		h.listed(nil)
		h.opened(nil)
		h.followed()
		if state := h.now(); state.Blind || state.Fault != nil {
			t.Errorf("when there is a watch again the state is %+v", state)
		}
		if n := len(notified.take()); n != 4 {
			t.Errorf("notified %d times, want 4: blind, the reason, listed, well", n)
		}
	})
}

func TestASourceThatIsDeniedIsBlindWhenTheTimeComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		set := New(s.settings())
		defer set.Close()
		h := mustOpen(t, set, Source{GVR: foos}, ignore)
		advance(time.Minute)
		s.set(forbidden, forbidden)
		s.cut(apierrors.NewResourceExpired("old"))
		advance(blindAfter - time.Second)
		if state := h.State(); state.Blind || !apierrors.IsForbidden(state.Fault) {
			t.Errorf("before the time the state is %+v", state)
		}
		advance(time.Second)
		if state := h.State(); !state.Blind || !apierrors.IsForbidden(state.Fault) {
			t.Errorf("when the time has come the state is %+v", state)
		}
		s.set(nil, nil)
		advance(retryMost)
		if state := h.State(); state.Blind || state.Fault != nil {
			t.Errorf("when all is well again the state is %+v", state)
		}
	})
}

func TestAWatchThatFallsSilentIsOpenedAgain(t *testing.T) {
	tests := map[string]struct {
		period  time.Duration // between bookmarks, none when zero
		silence time.Duration
		want    int // watches in all
		lists   int
	}{
		"one that has sent bookmarks":                             {time.Minute, silentAfter, 2, 1},
		"not before its time":                                     {time.Minute, silentAfter - time.Second, 1, 1},
		"one whose bookmarks are rare, a quarter late":            {4 * time.Minute, 5 * time.Minute, 2, 1},
		"not before its bookmark is a quarter late":               {4 * time.Minute, 5*time.Minute - time.Second, 1, 1},
		"not one of a server that sends no bookmarks":             {0, 5 * time.Minute, 1, 1},
		"that one when it is open for longer than it was to be":   {0, 11 * time.Minute, 2, 1},
		"what is there is listed when the next one is silent too": {time.Minute, 2*silentAfter + retryFirst, 3, 2},
		"not one that has sent bookmarks until a moment before":   {time.Minute, time.Minute, 1, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				set := New(s.settings())
				defer set.Close()
				mustOpen(t, set, Source{GVR: foos}, ignore)
				synctest.Wait()
				for range 5 {
					if tt.period > 0 {
						advance(tt.period)
						s.put("a", "1")
						s.send(apiwatch.Bookmark, s.bookmark(""))
						synctest.Wait()
					}
				}
				advance(tt.silence)
				wantCounts(t, s, tt.lists, tt.want, 1)
			})
		})
	}
}

// TestAWatchThatNeverSaysAnythingIsOpenedAgain holds that a server which has streamed a list, and so sends bookmarks, is
// not waited for until its time is over when none comes, and that one without bookmarks is let be after two tries.
func TestAWatchThatNeverSaysAnythingIsOpenedAgain(t *testing.T) {
	tests := map[string]struct {
		after time.Duration
		want  int // watches in all, that of the list among them
	}{
		"not before its time":                        {silentAfter - time.Second, 1},
		"when a bookmark is missing":                 {silentAfter, 2},
		"once more when the next one is silent, too": {2 * silentAfter, 3},
		"no more after that":                         {3 * silentAfter, 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				s.put("a", "1")
				settings := s.settings()
				settings.Dynamic = streaming{s.dynamic}
				set := New(settings)
				defer set.Close()
				mustOpen(t, set, Source{GVR: foos}, ignore)
				advance(tt.after)
				wantCounts(t, s, 0, tt.want, 1)
			})
		})
	}
}

func TestVersionsThatGoBackAreNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		var lines log
		settings := s.settings()
		settings.Log = lines.logger()
		set := New(settings)
		defer set.Close()
		h := mustOpen(t, set, Source{GVR: foos}, ignore)
		synctest.Wait()
		s.put("a", "1")
		synctest.Wait()
		at := h.ResourceVersion()
		s.gap(func() {})
		if n := lines.count("have gone back"); n != 0 {
			t.Errorf("after an ordinary gap it is said %d times that versions went back", n)
		}
		s.mu.Lock()
		s.version = 50
		s.mu.Unlock()
		s.send(apiwatch.Bookmark, s.bookmark("")) // the watch goes on, and shows it
		advance(relistMost)
		if n := lines.count("have gone back"); n != 1 {
			t.Errorf("it is said %d times that versions went back, want once", n)
		}
		if now := h.ResourceVersion(); now != strconv.Itoa(50) || at == now {
			t.Errorf("the cache is at version %s", now)
		}
	})
}

func TestAListThatStallsIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a", "1")
		settings := s.settings()
		settings.Dynamic = streaming{s.dynamic}
		s.stalls(true)
		set := New(settings)
		defer set.Close()
		h := mustOpen(t, set, Source{GVR: foos}, ignore)
		advance(stalledAfter - time.Second)
		wantCounts(t, s, 0, 1, 1)
		advance(stalledAfter)
		wantCounts(t, s, 0, 2, 1)
		if state := h.State(); state.Synced || !errors.Is(state.Fault, errStalled) {
			t.Errorf("when the first one has stalled the state is %+v", state)
		}
		s.stalls(false)
		advance(stalledAfter)
		if state := h.State(); !state.Synced || state.Fault != nil || h.Len() != 1 {
			t.Errorf("when one went through the state is %+v, with %d objects", state, h.Len())
		}
	})
}
