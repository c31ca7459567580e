// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// TestAWatchThatWasCutIsFollowedByAQuestion holds that one small question after a watch that ended before its time shows versions
// that have gone back, for the resumed watch does not; and that nothing is asked where there is no reason.
func TestAWatchThatWasCutIsFollowedByAQuestion(t *testing.T) {
	later := apierrors.NewInternalError(apierrors.NewTimeoutError("etcd", 0))
	tests := map[string]struct {
		see func(s *server)
		// asked are the questions, lists the listings in all, and epoch the alarms.
		asked, lists int
		epoch        uint64
	}{
		"the watch goes on":              {func(*server) {}, 0, 1, 0},
		"the server is as far as before": {func(s *server) { s.cut(nil) }, 1, 1, 0},
		"the server was set back": {func(s *server) {
			s.setBack(50, "a", 40)
			s.cut(nil)
		}, 1, 2, 1},
		"the server was set back while it could not list": {func(s *server) {
			s.setBack(50, "a", 40)
			s.set(later, nil)
			s.cut(nil)
			advance(time.Second / 4)
			s.set(nil, nil)
			advance(relistMost)
		}, 2, 2, 1},
		"the watch was cut twice": {func(s *server) {
			s.cut(nil)
			advance(time.Minute)
			s.cut(nil)
		}, 2, 1, 0},
		"the server has forgotten the version, so it is listed": {func(s *server) { s.cut(apierrors.NewResourceExpired("old")) }, 0, 2, 0},
		"what came after the question proves nothing": {func(s *server) {
			s.mu.Lock()
			s.slow = time.Second
			s.mu.Unlock()
			s.cut(nil)
			advance(time.Second / 2)
			s.mu.Lock()
			s.version = 500
			s.send(apiwatch.Bookmark, s.bookmark(""))
			s.mu.Unlock()
		}, 1, 1, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				s.put("a", "1")
				set := New(s.settings())
				defer set.Close()
				h := mustOpen(t, set, Source{GVR: foos}, ignore)
				synctest.Wait()
				advance(time.Minute)
				tt.see(s)
				advance(relistMost)
				most := tt.asked + int(tt.epoch) // an alarm ends the watch, which may be asked about once more before the source lists
				if got := s.asked(); got < tt.asked || got > most {
					t.Errorf("asked for the newest version %d times, want %d to %d", got, tt.asked, most)
				}
				if lists, _, open := s.counts(); lists != tt.lists || open != 1 || h.Epoch() != tt.epoch {
					t.Errorf("%d listings, %d open watches, epoch %d; want %d, 1 and %d", lists, open, h.Epoch(), tt.lists, tt.epoch)
				}
			})
		})
	}
}
