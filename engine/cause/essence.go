// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package cause tells why handlers run. It is pure: from an object, what is remembered of it and
// what has happened since, it says which causes hold for which handler, and what changed.
package cause

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Essence returns the part of an object whose change counts: everything but apiVersion, kind and
// status, of the metadata the labels and annotations alone, and of those not what operators keep
// their books with. Values are shared with the object, maps that differ are new. Empty maps are
// left out, so that removing the last label equals never having had one.
func Essence(object map[string]any) map[string]any {
	essence := make(map[string]any, len(object))
	for key, value := range object {
		switch key {
		case "apiVersion", "kind", "status", "metadata":
		default:
			essence[key] = value
		}
	}
	metadata, _ := object["metadata"].(map[string]any)
	kept := map[string]any{}
	if labels, _ := metadata["labels"].(map[string]any); len(labels) > 0 {
		kept["labels"] = labels
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	if own := authored(annotations); len(own) > 0 {
		kept["annotations"] = own
	}
	if len(kept) > 0 {
		essence["metadata"] = kept
	}
	return essence
}

func authored(annotations map[string]any) map[string]any {
	out := make(map[string]any, len(annotations))
	for key, value := range annotations {
		if !bookkeeping(key, value) {
			out[key] = value
		}
	}
	return out
}

func bookkeeping(key string, value any) bool {
	if text, ok := value.(string); ok {
		if strings.HasPrefix(text, dsl.StateMark) || strings.HasPrefix(text, dsl.AppliedMark) {
			return true
		}
	}
	return dsl.Bookkeeping(key)
}

// Project returns the essence limited to the fields.
func Project(essence map[string]any, fields []dsl.Path) map[string]any {
	out := map[string]any{}
	for _, f := range fields {
		value, found := f.In(essence)
		if !found {
			continue
		}
		at := out
		for _, key := range f[:len(f)-1] {
			next, ok := at[key].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[key] = next
			}
			at = next
		}
		at[f[len(f)-1]] = value
	}
	return out
}

// Patched returns the tree with a merge patch in the sense of RFC 7386 laid on it; neither is
// changed.
func Patched(tree, patch map[string]any) map[string]any {
	out := maps.Clone(tree)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range patch {
		over, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(out, key)
		case isMap:
			below, _ := out[key].(map[string]any)
			out[key] = Patched(below, over)
		default:
			out[key] = value
		}
	}
	return out
}

// Digest returns a short text that differs when the value differs: 72 bits of the SHA-256 of its
// JSON with sorted keys. The digest of nil is "-".
func Digest(value any) string {
	if value == nil {
		return "-"
	}
	data, err := json.Marshal(value)
	if err != nil {
		return "!" // not JSON, so it cannot come from an API object; never equal to a digest
	}
	sum := sha256.Sum256(data)
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}
