// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book

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

// version is that of the texts that are written.
const version = 2

// MaxSize is the largest text that is stored, in bytes. All annotations of an object share 256 KiB,
// so half of it is left to others.
const MaxSize = 128 * 1024

// ErrRoom says that not even digests fit on the object, for all that others have written there.
var ErrRoom = errors.New("the annotations of the object leave no room")

// stored is the form of the annotation. Its version comes first: that key marks the annotation as an
// operator's.
type stored struct {
	Version    int              `json:"handwerk"`
	UID        types.UID        `json:"uid,omitempty"`
	Generation int64            `json:"generation,omitempty"`
	Counted    bool             `json:"counted,omitempty"`
	Handlers   map[string]Entry `json:"handlers,omitempty"`
	essences
}

// lastingTry returns the try as far as the next process must know of it: what happened beside the object it
// finds out itself, and that a handler waits unless it does so with another view than it has handled.
func (e Entry) lastingTry(r Reader) Record {
	if !e.Try.Cause.Lasting() || !r.Stores() && e.Try.Cause != dsl.Delete {
		return Record{}
	}
	if e.Try.Bare() && !e.undoes() {
		return Record{}
	}
	return e.Try.Lasting()
}

// Encode returns the text of the book for an object whose annotations leave so much room, in bytes. Where not all fits,
// former ids of handlers are left out first. Then so is what handlers want to see of what was, and degraded is true: the
// object is handled all the same. The error is ErrRoom when nothing fits. A book with nothing worth storing in
// it has no text. The look is at the object as it is now: handlers that have seen it so are kept that.
func (b Book) Encode(readers []Reader, look *Look, room int) (text string, degraded bool, err error) {
	out := stored{Version: version, UID: b.UID, Generation: b.Generation, Counted: b.Counted, Handlers: map[string]Entry{}}
	some := false
	for _, r := range readers {
		e, _ := b.Entry(r.ID)
		try := e.lastingTry(r)
		if e.Begins && !e.Fresh || !r.Stores() && try.Cause == "" {
			continue
		}
		some = some || worth(r, e)
		e.Try = try
		out.Handlers[r.ID] = e
	}
	if !some {
		return "", false, nil
	}
	out.essences = b.gather(readers, look)
	bare := out
	bare.essences = essences{}
	for i, form := range []stored{out.former(readers), out, bare.former(readers), bare} {
		text, err = form.encode()
		if degraded = i > 1; err == nil && (len(text) > min(room, MaxSize) || heavy([]byte(text))) || errors.Is(err, ErrLarge) {
			text, err = "", ErrRoom
			continue
		}
		break
	}
	if err != nil {
		return "", false, fmt.Errorf("encoding state: %w", err)
	}
	return text, degraded, nil
}

// former returns the form in which entries are found under former ids, too, so that an earlier version of the operator finds
// them after a roll-back.
func (s stored) former(readers []Reader) stored {
	if !slices.ContainsFunc(readers, func(r Reader) bool { return len(r.Was) > 0 }) {
		return s
	}
	s.Handlers = maps.Clone(s.Handlers)
	for _, r := range readers {
		e, found := s.Handlers[r.ID]
		for _, was := range r.Was {
			if found {
				s.Handlers[was], s.essences = e, *s.renamed(r.ID, was)
			}
		}
	}
	return s
}

// encode returns the text of the form, with what is large in it packed.
func (s stored) encode() (string, error) {
	if err := s.pack(); err != nil {
		return "", err
	}
	data, err := json.Marshal(s)
	return string(data), err
}

// Load reads the text on an object. What is another object's is void. A text of version 1 does not say
// whose it is; vouched is asked whether this operator wrote it.
func Load(text string, uid types.UID, vouched func() bool) (Book, error) {
	void := Book{UID: uid}
	if text == "" {
		return void, nil
	}
	found, err := versionOf(text)
	if err != nil {
		return void, err
	}
	switch found {
	case 1:
		if !vouched() {
			return void, nil
		}
		l, err := parseLegacy(text)
		if err != nil {
			return void, err
		}
		return Book{UID: uid, Known: l.handled, legacy: l, text: text}, nil
	case version:
	default:
		return void, fmt.Errorf("decoding state: version %d is not known", found)
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

// mostMaps bounds the entries of a text, those of sub-handlers among them: what MaxSize has room for. A short text could
// otherwise have so many empty ones that they take fifty times as much.
const mostMaps = MaxSize / 16

// heavy reports whether a text has more entries than are read.
func heavy(text []byte) bool { return bytes.Count(text, []byte("{")) > mostMaps }

// decode reads a text, or a part of one, into a form.
func decode(text []byte, into any) error {
	if err := utiljson.Unmarshal(text, into); err != nil {
		return fmt.Errorf("decoding state: %w", err)
	}
	return nil
}

// decodeEntries reads what a text has of handlers. It refuses what would take much more memory than the text.
func decodeEntries(text []byte, into any) error {
	switch {
	case heavy(text):
		return fmt.Errorf("decoding state: it has more than %d entries", mostMaps)
	case len(text) == 0:
		return nil
	}
	return decode(text, into)
}

// parse reads a text, whosever it is.
func parse(text string) (Book, error) {
	var in struct {
		Version    int             `json:"handwerk"`
		UID        types.UID       `json:"uid"`
		Generation int64           `json:"generation"`
		Counted    bool            `json:"counted"`
		Handlers   json.RawMessage `json:"handlers"`
		sealed
	}
	if version, err := versionOf(text); err != nil {
		return Book{}, err
	} else if version == 1 {
		l, err := parseLegacy(text)
		if err != nil {
			return Book{}, err
		}
		return Book{kept: l.sealed}, nil
	}
	var entries map[string]Entry
	if err := decode([]byte(text), &in); err != nil {
		return Book{}, err
	}
	if err := decodeEntries(in.Handlers, &entries); err != nil {
		return Book{}, err
	}
	b := Book{UID: in.UID, Generation: in.Generation, Counted: in.Counted, Known: true, text: text, kept: &in.sealed}
	for _, id := range slices.Sorted(maps.Keys(entries)) {
		b.entries = append(b.entries, entryOf(id, entries[id]))
	}
	return b, nil
}

// versionOf returns the version of a text.
func versionOf(text string) (int, error) {
	var head struct {
		Version int `json:"handwerk"`
	}
	if err := json.Unmarshal([]byte(text), &head); err != nil {
		return 0, fmt.Errorf("decoding state: %w", err)
	}
	return head.Version, nil
}
