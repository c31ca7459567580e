// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/engine/cached"
)

// log has the passes over one object.
type log struct {
	id ID
	// passes are in order; first is the number of the first one.
	passes []kept
	first  int
	// data has the bytes of all passes.
	data []byte
	// versions is about how much memory the versions take.
	versions int
}

// kept is a pass. Times are nanoseconds since the epoch, zero for none.
type kept struct {
	at, due int64
	took    time.Duration
	// more passes were like it, the latest at a time.
	latest int64
	more   int32
	// from is where its bytes begin.
	from    int32
	version *cached.Object
}

// Moment is when a pass began, how long it took, and when the next one is due; zero for none.
type Moment struct {
	At, Due time.Time
	Took    time.Duration
}

// repeats counts a pass with the last one if that was like it.
func (l *log) repeats(when Moment, data []byte, version *cached.Object) bool {
	if len(l.passes) == 0 {
		return false
	}
	last := &l.passes[len(l.passes)-1]
	if !Same(last.version, version) || !bytes.Equal(l.data[last.from:], data) {
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

// add adds a pass.
func (l *log) add(when Moment, data []byte, version *cached.Object) {
	if len(l.passes) == cap(l.passes) {
		l.passes = slices.Grow(l.passes, min(len(l.passes)+2, passesMost+1-len(l.passes)))
	}
	l.passes = append(l.passes, kept{
		at: when.At.UnixNano(), due: nanos(when.Due), took: when.Took, from: int32(len(l.data)), version: version,
	})
	l.data = append(l.data, data...)
}

// drop drops the oldest pass. Its memory is used again.
func (l *log) drop() {
	size := int32(len(l.data))
	if len(l.passes) > 1 {
		size = l.passes[1].from
	}
	l.data = append(l.data[:0], l.data[size:]...)
	l.passes = slices.Delete(l.passes, 0, 1)
	for i := range l.passes {
		l.passes[i].from -= size
	}
	l.first++
}

// read returns the passes, the oldest first.
func (l *log) read() []Pass {
	out := make([]Pass, 0, len(l.passes))
	for i, p := range l.passes {
		end := int32(len(l.data))
		if i+1 < len(l.passes) {
			end = l.passes[i+1].from
		}
		one := decode(l.data[p.from:end])
		one.Moment = Moment{At: moment(p.at), Due: moment(p.due), Took: p.took}
		one.More, one.Latest, one.Version = int(p.more), moment(p.latest), p.version
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
