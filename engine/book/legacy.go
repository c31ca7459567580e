// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
)

// UnsignedMark is the beginning of a text of version 1, as operators wrote it. It does not identify its object, so
// readers must check who wrote it.
const UnsignedMark = bookkeeping.StateMark + "1,"

// legacy is a text of version 1: one old essence for the whole object, with a digest for each field that handlers
// looked at, and records of unfinished handlers. It identifies neither its object nor a deletion.
type legacy struct {
	handled bool
	base    map[string]string
	sealed  *sealed
	records map[string]Record
}

func parseLegacy(text string) (*legacy, error) {
	var in struct {
		Base    map[string]string `json:"base"`
		Records json.RawMessage   `json:"handlers"`
		sealed
	}
	if err := decode([]byte(text), &in); err != nil {
		return nil, err
	}
	l := &legacy{handled: in.Base != nil, base: in.Base}
	if err := decodeEntries(in.Records, &l.records); err != nil {
		return nil, err
	}
	l.sealed = &sealed{Old: in.Old, Packed: in.Packed, legacy: l}
	return l, nil
}

// kept returns the old essence and what it covers: the whole, if its digest matches, or else the fields that have
// digests.
func (l *legacy) kept(old map[string]any) *essences {
	x := &essences{Old: old}
	if whole, has := l.base[""]; has && Digest(old) == whole {
		return x
	}
	x.Fields = slices.DeleteFunc(slices.Sorted(maps.Keys(l.base)), func(f string) bool { return f == "" })
	if len(x.Fields) == 0 {
		x.Old = nil
	}
	return x
}

// entry returns the entry of a handler.
func (l *legacy) entry(r Reader, m Moment) Entry {
	record, begun := l.records[r.ID]
	if record.Cause == dsl.Delete {
		return l.entryInDeletion(r, m, record)
	}
	if !r.Stores() {
		return Entry{}
	}
	e := Entry{Of: r.View.Name()}
	seen, based := l.base[e.Of]
	switch {
	case record.Done:
		e.Seen = record.View
		if record.Failed {
			e.Lost, e.Try = record.Cause, record
		}
		return e
	case based:
		e.Seen = seen
	case !l.handled && r.On(dsl.Create):
		e.Begins, e.Fresh = !begun, !begun
	default:
		return l.unknown(r, m)
	}
	if begun {
		e.Try = record
	}
	return e
}

// entryInDeletion assumes that the record of a deletion is for the current one.
func (l *legacy) entryInDeletion(r Reader, m Moment, record Record) Entry {
	var e Entry
	if r.Stores() {
		e.Of, e.Seen = r.View.Name(), l.base[r.View.Name()]
	}
	if m.Deletion != "" {
		e.Try, e.Deletion = record, m.Deletion
	}
	return e
}

// unknown returns the entry of a handler whose view has no digest: the handler is new to the object, or has another
// view than before.
func (l *legacy) unknown(r Reader, m Moment) Entry {
	tree, whole, fields := l.sealed.met(m).of(r.ID)
	if tree == nil || !r.View.within(whole, fields) {
		return Entry{Of: r.View.Name(), Begins: true}
	}
	return Entry{Of: r.View.Name(), Seen: lookBack(tree).Digest(r.View), Quiet: true}
}
