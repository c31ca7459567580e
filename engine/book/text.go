// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/progress"
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
func (e Entry) lastingTry(r Reader) progress.Record {
	if !e.Try.Cause.Lasting() || !r.Stores() && e.Try.Cause != dsl.Delete {
		return progress.Record{}
	}
	if e.Try.Bare() && !e.undoes() {
		return progress.Record{}
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
		if degraded = i > 1; err != nil || len(text) <= min(room, MaxSize) {
			break
		}
		text, err = "", ErrRoom
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
	var head struct {
		Version int `json:"handwerk"`
	}
	if err := json.Unmarshal([]byte(text), &head); err != nil {
		return void, fmt.Errorf("decoding state: %w", err)
	}
	switch head.Version {
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
		return void, fmt.Errorf("decoding state: version %d is not known", head.Version)
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

// parse reads a text, whosever it is.
func parse(text string) (Book, error) {
	var in stored
	if err := utiljson.Unmarshal([]byte(text), &in); err != nil {
		return Book{}, fmt.Errorf("decoding state: %w", err)
	}
	if in.Version == 1 {
		l, err := parseLegacy(text)
		if err != nil {
			return Book{}, err
		}
		return Book{kept: l.kept()}, nil
	}
	if err := in.unpack(); err != nil {
		return Book{}, fmt.Errorf("decoding state: %w", err)
	}
	b := Book{UID: in.UID, Generation: in.Generation, Counted: in.Counted, Known: true, text: text, kept: &in.essences}
	for _, id := range slices.Sorted(maps.Keys(in.Handlers)) {
		b.entries = append(b.entries, entryOf(id, in.Handlers[id]))
	}
	return b, nil
}
