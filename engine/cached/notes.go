// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"bytes"
	"maps"
	"strings"

	"github.com/handwerk-dev/handwerk/engine/cached/scan"
)

// fewNotes is how large annotations may be, as JSON in bytes, of which some are not held. How much room there is for one
// more is worked out from those that are held, so what is left out has to be little beside the 256 KiB that the API
// server takes.
const fewNotes = 16 << 10

// notes are the annotations that are held: keys, and beginnings of keys, with a slash at the end. Nil are all.
type notes []string

func parseNotes(text string) notes {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

func (n notes) hold(key string) bool {
	for _, held := range n {
		if key == held || strings.HasSuffix(held, "/") && strings.HasPrefix(key, held) {
			return true
		}
	}
	return false
}

// append appends what is held of annotations. That there are any is known, for expressions may ask.
func (n notes) append(out, key, annotations []byte) []byte {
	if n == nil || len(annotations) > fewNotes || annotations[0] != '{' {
		return append(appendKey(out, key), annotations...)
	}
	out = append(appendKey(out, key), '{')
	for name, value := range scan.Members(annotations) {
		if n.holdWritten(name) {
			out = append(appendKey(out, name), value...)
		}
	}
	return append(out, '}')
}

func (n notes) holdWritten(key []byte) bool {
	if bytes.IndexByte(key, '\\') >= 0 {
		return n.hold(scan.Key(key))
	}
	return n.hold(string(key))
}

// of returns metadata with the annotations that are held of it, and leaves it as it is.
func (n notes) of(metadata map[string]any) map[string]any {
	annotations, is := metadata["annotations"].(map[string]any)
	if n == nil || !is {
		return metadata
	}
	out, held := maps.Clone(metadata), map[string]any{}
	for key, value := range annotations {
		if n.hold(key) {
			held[key] = value
		}
	}
	out["annotations"] = held
	return out
}
