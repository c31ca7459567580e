// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
)

const (
	// quietFirst and quietMost bound the time after an alarm in which there is no other one: it doubles from the first
	// to the second. Versions of an aggregated API need not grow, so alarms may be false, and each costs a listing of
	// every source.
	quietFirst = time.Minute
	quietMost  = time.Hour
	// waitMost is how long a handler waits before it looks whether all has been listed again.
	waitMost = 5 * time.Second
)

// BackError says that the API server answered with an older version of an object than the cache has: etcd was set back
// to a snapshot. Whoever gets it tries again when the caches have listed again. It is one of [dsl.Waiting], so it counts
// as no attempt of a handler.
type BackError struct {
	what, cached, live string
	// source has to list again first; empty where versions were compared.
	source string
}

// Behind returns the error of an action, as in "deleting Pod a/b", that waits until a source has listed again.
func Behind(what, source string) error { return &BackError{what: what, source: source} }

// Error names the versions, or what is waited for.
func (e *BackError) Error() string {
	if e.source != "" {
		return fmt.Sprintf("%s: waiting for %s to be listed again, for the API server's versions have gone back", e.what, e.source)
	}
	return fmt.Sprintf("%s has version %s, older than version %s of the cache: the API server's versions have gone back, and all caches list again",
		e.what, e.live, e.cached)
}

// Unwrap makes it an error of [dsl.Waiting].
func (e *BackError) Unwrap() error { return dsl.Waiting(e.Error(), waitMost) }

// IsBack reports whether an error is a [BackError].
func IsBack(err error) bool {
	_, is := errors.AsType[*BackError](err)
	return is
}

// alarms is the knowledge of a set about versions that went back. [Set.mu] guards it.
type alarms struct {
	// epoch counts the alarms. After each one every source has to list again.
	epoch uint64
	// last is when the last one was, and quiet how long there is no other one after it.
	last  time.Time
	quiet time.Duration
	// next is the alarm that waits for the end of that time, or nil.
	next *time.Timer
}

// wentBack makes every source list again, because the source by has seen that the versions of what have gone back. Listed:
// it has seen that in a listing, so it has listed again already. Now is false when the alarm waits, because it comes soon
// after another one.
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
		by.relisted()
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

// era is the knowledge of an observer about versions that went back. [observer.mu] guards it.
type era struct {
	// wanted is the alarm after which the source has to list, and got the one after which it has listed. Begun is the
	// one after which the listing that is under way was begun.
	wanted, got, begun uint64
	// again is closed when wanted changes; nil while no stream waits for that.
	again chan struct{}
	// handed is the version that was handed to the reflector last. Pending: the cache may not show the last listing yet.
	handed  string
	pending bool
	// cuts counts the watches that ended early. Proven is the value of cuts when the server last returned its newest
	// version, and proving is true while a request for that is under way.
	cuts, proven uint64
	proving      bool
}

// relist makes the source list again after an alarm.
func (o *observer) relist(epoch uint64) {
	o.mu.Lock()
	o.wanted = epoch
	if o.again != nil {
		close(o.again)
		o.again = nil
	}
	o.mu.Unlock()
	o.pace.calm()
}

// turned returns a channel that is closed when the source has to list again, or has to already.
func (o *observer) turned() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.again == nil {
		o.again = make(chan struct{})
	}
	out := o.again
	if o.got < o.wanted {
		close(o.again)
		o.again = nil
	}
	return out
}

// begin notes that a listing begins. It reports whether the listing has to show the newest state, whatever versions
// are known.
func (o *observer) begin() (newest bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begun = o.wanted
	return o.got < o.wanted
}

// complete notes that the listing which was begun last is complete, at a version.
func (o *observer) complete(version string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.handed, o.proven = version, o.cuts
	if o.got < o.begun {
		o.got, o.pending = o.begun, true
	}
}

// relisted records that the current listing shows the state after the last alarm.
func (o *observer) relisted() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begun = o.wanted
}

// hand notes the version of an event that was handed to the reflector.
func (o *observer) hand(version string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if version != "" {
		o.handed = version
	}
}

// due reports whether the source has to list again.
func (o *observer) due() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.got < o.wanted
}

// behind reports whether the cache may be that of before the last alarm.
func (o *observer) behind() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pending {
		at := o.cacheVersion()
		o.pending = at != "" && at != o.handed
	}
	return o.pending || o.got < o.wanted
}

// epoch is the alarm after which the source has listed.
func (o *observer) epoch() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.got
}

// before reports whether a version is older than the one that was handed to the reflector last.
func (o *observer) before(version string) (last string, is bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.handed, older(version, o.handed)
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

// compare looks whether a listing shows an older version of an object than the cache has. Etcd may be set back with a
// higher revision, as its tool offers: then the listing's own version does not show it.
func (o *observer) compare(shown metav1.Object) {
	if o.informer == nil {
		return
	}
	key := cache.MetaObjectToName(shown)
	had, found := o.informer.object(key)
	if found && had.GetUID() == shown.GetUID() && older(shown.GetResourceVersion(), had.GetResourceVersion()) {
		o.back(true, named{o.health.src, key}, had.GetResourceVersion(), shown.GetResourceVersion())
	}
}
