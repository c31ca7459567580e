// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// expired is what a watch ends with when its version was forgotten.
var expired = apierrors.NewResourceExpired("old").Status()

// sources are two of one server, which get the same listings and events, as far as the server is not asked by one alone.
func sources(t *testing.T, s *server, lines *log) (set *Set, all *Handle, some *Handle) {
	t.Helper()
	settings := s.settings()
	settings.Log = lines.logger()
	set = New(settings)
	t.Cleanup(set.Close)
	all, some = mustOpen(t, set, Source{GVR: foos}, ignore), mustOpen(t, set, Source{GVR: foos, Namespace: "default"}, ignore)
	synctest.Wait()
	return set, all, some
}

// setBack gives the server another version, and an object another one, as a restored snapshot has them.
func (s *server) setBack(version int, name string, has int) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
	s.objects[name].SetResourceVersion(strconv.Itoa(has))
	return s.objects[name].DeepCopy()
}

// TestAllSourcesListAgainWhenVersionsGoBack holds what is proof that versions have gone back, and what comes of it.
func TestAllSourcesListAgainWhenVersionsGoBack(t *testing.T) {
	read := func(s *server, set *Set) error {
		_, err := set.Compare(foos, "default", s.dynamic.Resource(foos).Namespace("default")).Get(t.Context(), "a", metav1.GetOptions{})
		return err
	}
	tests := map[string]struct {
		see   func(t *testing.T, s *server, set *Set)
		lists int
	}{
		"a bookmark of an older version": {func(_ *testing.T, s *server, _ *Set) {
			s.setBack(50, "a", 40)
			s.streams[0].Action(apiwatch.Bookmark, s.bookmark(""))
		}, 4},
		"an event of an older version": {func(_ *testing.T, s *server, _ *Set) {
			o := s.setBack(50, "a", 40)
			s.streams[0].Action(apiwatch.Modified, o)
		}, 4},
		"a listing of an older version, after which that source need not list once more": {func(_ *testing.T, s *server, _ *Set) {
			s.setBack(50, "a", 40)
			s.streams[0].Error(&expired)
			s.streams[0].Stop()
		}, 4},
		"a listing of a newer version with an older object, as after a restore that raises the revision": {func(_ *testing.T, s *server, _ *Set) {
			s.setBack(500, "a", 40)
			s.streams[0].Error(&expired)
			s.streams[0].Stop()
		}, 4},
		"a live read of an older object": {func(t *testing.T, s *server, set *Set) {
			s.answer(s.setBack(50, "a", 40))
			if err := read(s, set); !IsRollback(err) {
				t.Errorf("the read ended with %v", err)
			}
		}, 4},
		"a live read of an object that the cache has in an older version, though it is ahead": {func(t *testing.T, s *server, set *Set) {
			o := s.setBack(900, "a", 101)
			s.send(apiwatch.Bookmark, s.bookmark(""))
			synctest.Wait()
			o.SetResourceVersion("800") // changed since it was set back, at a version that the cache should have
			s.answer(o)
			if err := read(s, set); !IsRollback(err) {
				t.Errorf("the read ended with %v", err)
			}
		}, 4},
		"not a live read of what the cache has": {func(t *testing.T, s *server, set *Set) {
			s.answer(s.setBack(101, "a", 101))
			if err := read(s, set); err != nil {
				t.Errorf("the read ended with %v", err)
			}
		}, 2},
		"not a live read of what is newer": {func(t *testing.T, s *server, set *Set) {
			s.answer(s.setBack(105, "a", 105))
			if err := read(s, set); err != nil {
				t.Errorf("the read ended with %v", err)
			}
		}, 2},
		"not a live read of what a listing did not have": {func(t *testing.T, s *server, set *Set) {
			o := s.setBack(101, "a", 101)
			o.SetUID("another")
			s.answer(o)
			if err := read(s, set); err != nil {
				t.Errorf("the read ended with %v", err)
			}
		}, 2},
		"not versions that cannot be compared": {func(t *testing.T, s *server, set *Set) {
			o := s.setBack(101, "a", 101)
			o.SetResourceVersion("040")
			s.answer(o)
			if err := read(s, set); err != nil {
				t.Errorf("the read ended with %v", err)
			}
		}, 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, lines := newServer(), &log{}
				s.put("a", "1")
				set, all, some := sources(t, s, lines)
				wantCounts(t, s, 2, 2, 2)
				tt.see(t, s, set)
				synctest.Wait()
				alarms := 0
				if tt.lists > 2 {
					alarms = 1
				}
				advance(relistMost)
				if got, _, open := s.counts(); got != tt.lists || open != 2 {
					t.Errorf("%d listings and %d open watches, want %d and 2", got, open, tt.lists)
				}
				if n := lines.count("all caches list again"); n != alarms {
					t.Errorf("%d lines say that versions went back, want %d", n, alarms)
				}
				if all.Behind() || some.Behind() || all.Epoch() != uint64(alarms) || some.Epoch() != uint64(alarms) {
					t.Errorf("behind: %v and %v, at %d and %d", all.Behind(), some.Behind(), all.Epoch(), some.Epoch())
				}
			})
		})
	}
}

// TestAlarmsAreRare holds that a server whose versions do not grow, as one of an aggregated API, costs few listings and no event.
func TestAlarmsAreRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, lines := newServer(), &log{}
		var j journal
		settings := s.settings()
		settings.Log = lines.logger()
		set := New(settings)
		defer set.Close()
		mustOpen(t, set, Source{GVR: foos}, &j)
		synctest.Wait()
		for i := range 24 * 60 {
			s.mu.Lock()
			s.version = 10_000 - i
			s.mu.Unlock()
			s.put("a", strconv.Itoa(i))
			advance(time.Minute)
		}
		lists, _, _ := s.counts()
		if lists > 40 {
			t.Errorf("%d listings in a day", lists)
		}
		if got := j.take(); got[len(got)-1] != "added default/a 1439" {
			t.Errorf("the last event is %q", got[len(got)-1])
		}
	})
}

// TestWhatIsCachedIsOfBeforeUntilItIsListed holds that a source which cannot list counts as behind until it can.
func TestWhatIsCachedIsOfBeforeUntilItIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, lines := newServer(), &log{}
		s.put("a", "1")
		_, all, some := sources(t, s, lines)
		s.set(forbidden, nil)
		s.setBack(50, "a", 40)
		s.send(apiwatch.Bookmark, s.bookmark(""))
		advance(time.Hour)
		if !all.Behind() || !some.Behind() {
			t.Errorf("behind: %v and %v, want both", all.Behind(), some.Behind())
		}
		s.set(nil, nil)
		advance(retryMost)
		if all.Behind() || some.Behind() || all.ResourceVersion() != "50" {
			t.Errorf("behind: %v and %v at %s, want none at 50", all.Behind(), some.Behind(), all.ResourceVersion())
		}
	})
}
