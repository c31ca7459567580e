// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"sync"
)

// era knows after which alarm a source has listed, and whether the server is to be asked for its newest version. The zero value is
// that of a source that no alarm concerns.
type era struct {
	mu sync.Mutex
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

// turned returns a channel that is closed when the source has to list again, or has to already.
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

// begin notes that a listing begins. It reports whether the listing has to show the newest state, whatever versions
// are known.
func (e *era) begin() (newest bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.begun = e.wanted
	return e.got < e.wanted
}

// complete notes that the listing which was begun last is complete, at a version.
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

// hand notes the version of an event that was handed to the reflector.
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

// behind reports whether the cache may be that of before the last alarm. Cache returns the version that it has caught up to.
func (e *era) behind(cache func() string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pending {
		at := cache()
		e.pending = at != "" && at != e.handed
	}
	return e.pending || e.got < e.wanted
}

// epoch is the alarm after which the source has listed.
func (e *era) epoch() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.got
}

// before reports whether a version is older than the one that was handed to the reflector last.
func (e *era) before(version string) (last string, is bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.handed, older(version, e.handed)
}

// cut notes that a watch ended before its time. It may have lost its server, and the server may come back with etcd set back to a
// snapshot.
func (e *era) cut() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cuts++
}

// doubtful reports whether the server is to be asked, which begins then, for its newest version.
func (e *era) doubtful() (begins bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	begins = !e.proving && e.proven < e.cuts
	e.proving = e.proving || begins
	return begins
}

// doubt returns how many watches were cut so far, and the version that was handed to the reflector last: events that come after
// the question prove nothing. Open: the server has to be asked.
func (e *era) doubt(ctx context.Context) (cuts uint64, had string, open bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.proving = ctx.Err() == nil && e.proven < e.cuts
	return e.cuts, e.handed, e.proving
}

// prove notes that the server has returned its newest version after so many cuts.
func (e *era) prove(cuts uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.proven = max(e.proven, cuts)
}
