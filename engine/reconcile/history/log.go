// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

// log has the reconciles over one object.
type log struct {
	id ID
	// passes are in order; first is the number of the first one.
	passes []kept
	first  int
	// spare is the memory for the bytes of one more reconcile, which the oldest one has left.
	spare []byte
	// held is about how much memory the bytes of reconciles take, and versions how much the versions do.
	held, versions int
}

// kept is a reconcile. Times are nanoseconds since the epoch, zero for none.
type kept struct {
	at, due int64
	took    time.Duration
	// more reconciles were like it, the latest at a time.
	latest  int64
	more    int
	data    []byte
	version *cached.Object
	// left is the object as the reconcile has written it; nil where that is not known.
	left *cached.Object
}

// Moment is when a reconcile began, how long it took, and when the next one is due; zero for none.
type Moment struct {
	At, Due time.Time
	Took    time.Duration
}

// repeats counts a reconcile with the last one if that was like it.
func (l *log) repeats(when Moment, data []byte, version *cached.Object) bool {
	if len(l.passes) == 0 {
		return false
	}
	last := &l.passes[len(l.passes)-1]
	if !Same(last.version, version) || !bytes.Equal(last.data, data) {
		return false
	}
	last.more++
	last.latest, last.due = when.At.UnixNano(), nanos(when.Due)
	return true
}

// Same reports whether two versions of an object are one, or are both not known.
func Same(a, b *cached.Object) bool {
	return a == b || a != nil && b != nil && a.GetUID() == b.GetUID() && a.GetResourceVersion() == b.GetResourceVersion()
}

// add adds a reconcile. Its bytes get memory of their own size: a slice for all reconciles would be allocated again and again while it grows.
func (l *log) add(when Moment, data []byte, version *cached.Object) {
	if len(l.passes) == cap(l.passes) {
		l.passes = slices.Grow(l.passes, min(len(l.passes)+2, passesMost+1-len(l.passes)))
	}
	into := l.spare[:0]
	if l.spare = nil; cap(into) < len(data) {
		l.held -= cap(into)
		into = make([]byte, 0, len(data))
		l.held += cap(into)
	}
	l.passes = append(l.passes, kept{
		at: when.At.UnixNano(), due: nanos(when.Due), took: when.Took, data: append(into, data...), version: version,
	})
}

// drop drops the oldest pass. Its memory is used again.
func (l *log) drop() {
	l.held -= cap(l.spare)
	l.spare = l.passes[0].data
	l.passes = slices.Delete(l.passes, 0, 1)
	l.first++
}

// read returns the reconciles, the oldest first.
func (l *log) read(w *words) []Pass {
	out := make([]Pass, 0, len(l.passes))
	for _, p := range l.passes {
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
