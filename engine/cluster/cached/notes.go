// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"bytes"
	"maps"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl/plain/scan"
)

// fewNotes is the greatest size of annotations, as JSON in bytes, that are held in part. The room for
// another annotation is computed from the held ones, so the rest must be small compared with the 256 KiB of the API
// server.
const fewNotes = 16 << 10

// notes are the keys of held annotations; one that ends with a slash is a prefix. Nil means all.
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

// append appends the held annotations. The map itself is kept, because expressions may test its existence.
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

// of returns metadata with the held annotations only. The argument is not changed.
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
