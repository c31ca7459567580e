// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"sync"
)

// era records after which alarm a source has listed, and whether it has to ask the server for its newest version. The
// zero value is for a source that no alarm concerns.
type era struct {
	mu sync.Mutex
	// wanted is the alarm after which the source has to list. Got is the alarm after which it has listed. Begun is the
	// last alarm before the current listing began.
	wanted, got, begun uint64
	// again is closed when wanted changes; nil while no stream waits for it.
	again chan struct{}
	// handed is the version that the reflector got last. Pending is true while the cache may not show the last listing.
	handed  string
	pending bool
	// cuts counts the watches that ended early. Proven is the value of cuts when the server last returned its newest
	// version. Proving is true while a request for that is under way.
	cuts, proven uint64
	proving      bool
}

// want makes the source list again after an alarm.
func (e *era) want(epoch uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wanted = epoch
	if e.again != nil {
		close(e.again)
		e.again = nil
	}
}

// turned returns a channel that is closed when the source has to list again. It is closed at once if the source already
// has to.
func (e *era) turned() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.again == nil {
		e.again = make(chan struct{})
	}
	out := e.again
	if e.got < e.wanted {
		close(e.again)
		e.again = nil
	}
	return out
}

// begin records that a listing begins. It reports whether the listing has to show the newest state, whichever versions
// are known.
func (e *era) begin() (newest bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.begun = e.wanted
	return e.got < e.wanted
}

// complete records that the last begun listing is complete, at a version.
func (e *era) complete(version string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.handed, e.proven = version, e.cuts
	if e.got < e.begun {
		e.got, e.pending = e.begun, true
	}
}

// relisted records that the current listing shows the state after the last alarm.
func (e *era) relisted() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.begun = e.wanted
}

// hand records the version of an event that the reflector got.
func (e *era) hand(version string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if version != "" {
		e.handed = version
	}
}

// due reports whether the source has to list again.
func (e *era) due() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.got < e.wanted
}

// behind reports whether the cache may be from before the last alarm. Cache returns the version that it has caught up
// to.
func (e *era) behind(cache func() string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pending {
		at := cache()
		e.pending = at != "" && at != e.handed
	}
	return e.pending || e.got < e.wanted
}

// epoch returns the alarm after which the source has listed.
func (e *era) epoch() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.got
}

// before reports whether a version is older than the one that the reflector got last.
func (e *era) before(version string) (last string, is bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.handed, older(version, e.handed)
}

// cut records that a watch ended early. Its server may be gone, and may come back with etcd reset to a snapshot.
func (e *era) cut() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cuts++
}

// doubtful reports whether the caller has to ask the server for its newest version. It marks that request as begun.
func (e *era) doubtful() (begins bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	begins = !e.proving && e.proven < e.cuts
	e.proving = e.proving || begins
	return begins
}

// recheck returns the number of cut watches, and the version that the reflector got last. Events that come after the
// question prove nothing. Open is true if the server has to be asked.
func (e *era) recheck(ctx context.Context) (cuts uint64, had string, open bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.proving = ctx.Err() == nil && e.proven < e.cuts
	return e.cuts, e.handed, e.proving
}

// prove records that the server has returned its newest version after this many cuts.
func (e *era) prove(cuts uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.proven = max(e.proven, cuts)
}
