// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/handwerk-dev/handwerk/dsl/plain/scan"
)

// parts are those of a frame in the form of API servers, with a regular object. A frame in another form has no type.
// The frame reader, the decoder of frames and that of objects run in turn, and share the last event, so a frame is
// checked once.
type parts struct {
	kind watch.EventType
	// The object is at frame[from:to]. Raw is the same in the decoder's copy of the frame.
	from, to int
	raw      []byte
}

// kinds are the types of events.
var kinds = []watch.EventType{watch.Modified, watch.Added, watch.Deleted, watch.Bookmark, watch.Error}

// eventIn returns the event at the beginning of data, and its end. Without an event there, the end is [scan.Short] or
// [scan.Odd].
func eventIn(data []byte) (e parts, end int) {
	at := prefix(data, `{"type":"`)
	if at < 0 {
		return parts{}, at
	}
	name := bytes.IndexByte(data[at:], '"')
	if name < 0 {
		return parts{}, scan.Short
	}
	kind := kindOf(data[at : at+name])
	at += name
	colon := prefix(data[at:], `","object":`)
	if kind == "" {
		colon = scan.Odd
	}
	if colon < 0 {
		return parts{}, colon
	}
	at += colon
	size := scan.Object(data[at:])
	if size < 0 {
		return parts{}, size
	}
	over := prefix(bytes.TrimLeft(data[at+size:], whitespace), `}`)
	if over < 0 {
		return parts{}, over
	}
	return parts{kind: kind, from: at, to: at + size}, at + size + bytes.IndexByte(data[at+size:], '}') + 1
}

// prefix returns the length of a prefix of data. If data does not begin with it, it returns [scan.Short] or [scan.Odd].
func prefix(data []byte, want string) int {
	n := min(len(data), len(want))
	switch {
	case string(data[:n]) != want[:n]:
		return scan.Odd
	case n < len(want):
		return scan.Short
	}
	return n
}

func kindOf(name []byte) watch.EventType {
	for _, kind := range kinds {
		if string(name) == string(kind) {
			return kind
		}
	}
	return ""
}

// events decodes the frames of a watch.
type events struct {
	runtime.Serializer
	last *parts
}

// Decode splits the last event. The object shares the bytes of the frame.
func (e events) Decode(frame []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	out, is := into.(*metav1.WatchEvent)
	if !is || e.last.kind == "" || e.last.to > len(frame) {
		return e.Serializer.Decode(frame, defaults, into)
	}
	e.last.raw = frame[e.last.from:e.last.to]
	out.Type, out.Object.Raw = string(e.last.kind), e.last.raw
	return out, &schema.GroupVersionKind{Version: "v1", Kind: "WatchEvent"}, nil
}

// regular reports whether an object is regular. That of the last event was checked.
func (e *parts) regular(object []byte) bool {
	if e != nil && len(object) > 0 && len(object) == len(e.raw) && &object[0] == &e.raw[0] {
		return true
	}
	return scan.Regular(object)
}
