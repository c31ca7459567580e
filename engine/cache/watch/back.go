// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
)

const (
	// quietFirst and quietMost bound the time after an alarm without another one: it doubles from the first to the
	// second. Versions of an aggregated API need not grow, so alarms may be false, and each costs a listing of every
	// source.
	quietFirst = time.Minute
	quietMost  = time.Hour
	// waitMost is how long a handler waits before it checks whether all has been listed again.
	waitMost = 5 * time.Second
)

// RollbackError is the error if the API server returns an older version of an object than the cache has: etcd was reset to a
// snapshot. Callers try again when the caches have listed again. It is one of [dsl.Waiting], so it does not count as an
// attempt of a handler.
type RollbackError struct {
	what, cached, live string
	// source is the source that has to list again first; empty if versions were compared.
	source string
}

// Behind returns the error of an action, as in "deleting Pod a/b", that waits until a source has listed again.
func Behind(what, source string) error { return &RollbackError{what: what, source: source} }

// Error names the versions, or the source that has to list again.
func (e *RollbackError) Error() string {
	if e.source != "" {
		return fmt.Sprintf("%s: waiting for %s to be listed again, for the API server's versions have gone back", e.what, e.source)
	}
	return fmt.Sprintf("%s has version %s, older than version %s of the cache: the API server's versions have gone back, and all caches list again",
		e.what, e.live, e.cached)
}

// Unwrap returns an error of [dsl.Waiting].
func (e *RollbackError) Unwrap() error { return dsl.Waiting(e.Error(), waitMost) }

// IsRollback reports whether an error is a [RollbackError].
func IsRollback(err error) bool {
	_, is := errors.AsType[*RollbackError](err)
	return is
}

// alarms has the alarms of a set about versions that went back. [Set.mu] guards it.
type alarms struct {
	// epoch counts the alarms. After each one every source has to list again.
	epoch uint64
	// last is when the last alarm was. Quiet is how long no other alarm comes after it.
	last  time.Time
	quiet time.Duration
	// next is the alarm that waits for the end of the quiet time, or nil.
	next *time.Timer
}

// HasRolledBack reports whether the API server's versions have ever gone back. If not, no source is behind, so callers need
// not check each.
func (s *Set) HasRolledBack() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epoch > 0
}

// wentBack makes every source list again, because the source by has seen that the versions of what have gone back.
// Listed is true if it has seen that in a listing: it has listed again already. Now is false if the alarm has to wait,
// because another one was shortly before.
func (s *Set) wentBack(by *observer, listed bool, what fmt.Stringer, from, to string) (now bool) {
	s.mu.Lock()
	known, wait := s.closed || by.behind(), time.Until(s.last.Add(s.quiet))
	now = known || s.last.IsZero() || wait <= 0
	switch {
	case known:
	case now:
		s.alarmLocked(what, from, to)
	case s.next == nil:
		s.next = time.AfterFunc(wait, func() {
			s.mu.Lock()
			s.alarmLocked(what, from, to)
			s.mu.Unlock()
			s.notify()
		})
	}
	s.mu.Unlock()
	if now && listed {
		by.era.relisted()
	}
	if now && !known {
		s.notify()
	}
	return now
}

// notify calls the listener after an alarm.
func (s *Set) notify() {
	if s.settings.Listener != nil {
		s.settings.Listener.VersionsWentBack()
	}
}

// alarmLocked makes every source list again. The lock is held.
func (s *Set) alarmLocked(what fmt.Stringer, from, to string) {
	if s.next != nil {
		s.next.Stop()
		s.next = nil
	}
	now := time.Now()
	if now.Sub(s.last) > 2*s.quiet {
		s.quiet = 0
	}
	s.last, s.quiet = now, min(max(2*s.quiet, quietFirst), quietMost)
	s.epoch++
	s.settings.Log.Info("the API server's versions have gone back, as after a restored backup; all caches list again", logmark.Warning, true,
		"what", what.String(), "from", from, "to", to)
	for _, i := range s.informers {
		i.seen.relist(s.epoch)
	}
}

// older reports whether a version is known to be older than another one.
func older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// named is an object of a source, for people.
type named struct {
	src Source
	key cache.ObjectName
}

// String names the object.
func (n named) String() string { return n.src.String() + " " + n.key.String() }
