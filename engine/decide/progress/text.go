// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/handwerk-dev/handwerk/dsl"
)

// version is the version of texts, the only one that is written and read.
const version = 2

// maxSize is the size of the largest stored text in bytes. All annotations of an object share 256 KiB, so half of
// it is left to others.
const maxSize = 128 * 1024

// errRoom says that annotations of others leave no room even for the digests.
var errRoom = errors.New("the annotations of the object leave no room")

// stored is the form of the annotation. The version comes first: its key marks the annotation as an operator's.
type stored struct {
	Version    int              `json:"handwerk"`
	UID        types.UID        `json:"uid,omitempty"`
	Generation int64            `json:"generation,omitempty"`
	Handlers   map[string]Entry `json:"handlers,omitempty"`
	essences
}

// lastingTry returns the parts of the try that the next process needs. It leaves out changes of other objects,
// which the next process detects itself, and waits, unless the handler waits with another view than it has handled.
func (e Entry) lastingTry(h Handler) Record {
	if !e.Try.Cause.Lasting() || !h.Stores() && e.Try.Cause != dsl.Delete {
		return Record{}
	}
	if e.Try.onlyWaits() && !e.undoes() {
		return Record{}
	}
	return e.Try.Lasting()
}

// lasting returns the parts of the entry that are stored, and whether there are any.
func (e Entry) lasting(h Handler) (kept Entry, keeps bool) {
	try := e.lastingTry(h)
	bare := !h.Stores() && try.Cause == ""
	if e.At.IsZero() && (bare || e.NewHandler && !e.NewObject) {
		return Entry{}, false
	}
	if bare {
		return e.lastAppointment(), true
	}
	e.Try = try
	return e, true
}

// Encode returns the text of the progress for an object whose annotations leave so many bytes of room. If the text is
// too large, it first leaves out former ids of handlers. Then it leaves out the old states, and degraded is true: the
// object is handled all the same. The error is errRoom if nothing fits. Progress without information worth storing has
// no text. Snapshot is of the current object, which is the kept state of handlers that have handled it.
func (b Progress) Encode(handlers []Handler, snapshot *Snapshot, room int) (text string, degraded bool, err error) {
	out := stored{Version: version, UID: b.UID, Generation: b.Generation, Handlers: map[string]Entry{}}
	some := false
	for _, h := range handlers {
		e, _ := b.of(h)
		if kept, keeps := e.lasting(h); keeps {
			some = some || worth(h, e)
			out.Handlers[h.ID] = kept
		}
	}
	if !some {
		return "", false, nil
	}
	out.essences = b.gather(handlers, snapshot)
	bare := out
	bare.essences = essences{}
	for i, form := range []stored{out.former(handlers), out, bare.former(handlers), bare} {
		text, err = form.encode()
		if degraded = i > 1; err == nil && (len(text) > min(room, maxSize) || heavy([]byte(text))) || errors.Is(err, ErrLarge) {
			text, err = "", errRoom
			continue
		}
		break
	}
	if err != nil {
		return "", false, fmt.Errorf("encoding state: %w", err)
	}
	return text, degraded, nil
}

// former adds entries under former ids, so that an earlier version of the operator finds them after a roll-back.
func (s stored) former(handlers []Handler) stored {
	if !slices.ContainsFunc(handlers, func(h Handler) bool { return len(h.Was) > 0 }) {
		return s
	}
	s.Handlers = maps.Clone(s.Handlers)
	for _, h := range handlers {
		e, found := s.Handlers[h.ID]
		for _, was := range h.Was {
			if found {
				s.Handlers[was], s.essences = e, *s.renamed(h.ID, was)
			}
		}
	}
	return s
}

// encode returns the text, with large parts compressed.
func (s stored) encode() (string, error) {
	if err := s.pack(); err != nil {
		return "", err
	}
	data, err := json.Marshal(s)
	return string(data), err
}

// Load reads an object's text. The text of another object is void.
func Load(text string, uid types.UID) (Progress, error) {
	void := Progress{UID: uid}
	if text == "" {
		return void, nil
	}
	in, err := parse(text)
	if err != nil {
		return void, err
	}
	if in.UID != uid {
		return void, nil
	}
	return in, nil
}

// mostMaps limits the number of entries in a text, including those of sub-handlers, to what fits into maxSize. A
// short text could otherwise have so many empty entries that they take fifty times as much memory.
const mostMaps = maxSize / 16

// heavy reports whether a text has too many entries.
func heavy(text []byte) bool { return bytes.Count(text, []byte("{")) > mostMaps }

// decode decodes a text, or a part of one.
func decode(text []byte, into any) error {
	if err := utiljson.Unmarshal(text, into); err != nil {
		return fmt.Errorf("decoding state: %w", err)
	}
	return nil
}

// decodeEntries decodes the entries of handlers. It rejects texts that would take much more memory than their size.
func decodeEntries(text []byte, into any) error {
	switch {
	case heavy(text):
		return fmt.Errorf("decoding state: it has more than %d entries", mostMaps)
	case len(text) == 0:
		return nil
	}
	return decode(text, into)
}

// parse reads a text of any object.
func parse(text string) (Progress, error) {
	var in struct {
		UID        types.UID       `json:"uid"`
		Generation int64           `json:"generation"`
		Handlers   json.RawMessage `json:"handlers"`
		sealed
	}
	if err := checkVersion(text); err != nil {
		return Progress{}, err
	}
	var entries map[string]Entry
	if err := decode([]byte(text), &in); err != nil {
		return Progress{}, err
	}
	if err := decodeEntries(in.Handlers, &entries); err != nil {
		return Progress{}, err
	}
	b := Progress{UID: in.UID, Generation: in.Generation, Known: true, text: text, kept: &in.sealed}
	for _, id := range slices.Sorted(maps.Keys(entries)) {
		b.entries = append(b.entries, entryOf(id, entries[id]))
	}
	return b, nil
}

// checkVersion refuses a text of another version, whose other fields may mean something else.
func checkVersion(text string) error {
	var head struct {
		Version int `json:"handwerk"`
	}
	if err := json.Unmarshal([]byte(text), &head); err != nil {
		return fmt.Errorf("decoding state: %w", err)
	}
	if head.Version != version {
		return fmt.Errorf("decoding state: version %d is not known", head.Version)
	}
	return nil
}
