// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

// log has the recorded reconciles over one object.
type log struct {
	id ID
	// reconciles are in order; first is the number of the first one.
	reconciles []kept
	first      int
	// spare is the memory of a dropped reconcile, for the bytes of the next one.
	spare []byte
	// held is roughly the memory of the bytes of reconciles, and versions that of the versions.
	held, versions int
}

// kept is a recorded reconcile. Times are nanoseconds since the epoch, zero for none.
type kept struct {
	at, due int64
	took    time.Duration
	// more is the number of later reconciles with the same record, and latest the time of the last of them.
	latest  int64
	more    int
	data    []byte
	version *cached.Object
	// left is the object after the write of the reconcile; nil if unknown.
	left *cached.Object
}

// Moment is when a reconcile began, how long it took, and when the next one is due; zero for none.
type Moment struct {
	At, Due time.Time
	Took    time.Duration
}

// repeats counts a reconcile with the last one if their records are the same.
func (l *log) repeats(when Moment, data []byte, version *cached.Object) bool {
	if len(l.reconciles) == 0 {
		return false
	}
	last := &l.reconciles[len(l.reconciles)-1]
	if !Same(last.version, version) || !bytes.Equal(last.data, data) {
		return false
	}
	last.more++
	last.latest, last.due = when.At.UnixNano(), nanos(when.Due)
	return true
}

// Same reports whether two versions of an object are the same, or are both unknown.
func Same(a, b *cached.Object) bool {
	return a == b || a != nil && b != nil && a.GetUID() == b.GetUID() && a.GetResourceVersion() == b.GetResourceVersion()
}

// add adds a reconcile. Its bytes get memory of their own: one slice for all reconciles would be reallocated again and
// again as it grows.
func (l *log) add(when Moment, data []byte, version *cached.Object) {
	if len(l.reconciles) == cap(l.reconciles) {
		l.reconciles = slices.Grow(l.reconciles, min(len(l.reconciles)+2, mostReconciles+1-len(l.reconciles)))
	}
	into := l.spare[:0]
	if l.spare = nil; cap(into) < len(data) {
		l.held -= cap(into)
		into = make([]byte, 0, len(data))
		l.held += cap(into)
	}
	l.reconciles = append(l.reconciles, kept{
		at: when.At.UnixNano(), due: nanos(when.Due), took: when.Took, data: append(into, data...), version: version,
	})
}

// drop drops the oldest reconcile. Its memory is reused.
func (l *log) drop() {
	l.held -= cap(l.spare)
	l.spare = l.reconciles[0].data
	l.reconciles = slices.Delete(l.reconciles, 0, 1)
	l.first++
}

// read returns the reconciles, the oldest first.
func (l *log) read(w *words) []Reconcile {
	out := make([]Reconcile, 0, len(l.reconciles))
	for _, p := range l.reconciles {
		one := w.decode(p.data)
		one.Moment = Moment{At: moment(p.at), Due: moment(p.due), Took: p.took}
		one.More, one.Latest, one.Version, one.Left = p.more, moment(p.latest), p.version, p.left
		out = append(out, one)
	}
	return out
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func moment(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}
