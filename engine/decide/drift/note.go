// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"encoding/json"
	"fmt"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// The limits of one replaced value, and of a note of them, in bytes of JSON.
const (
	mostReplaced = 1 << 10
	mostNote     = 8 << 10
)

// storedReplaced is the form of a note. Version comes first: its key marks the annotation as an operator's.
type storedReplaced struct {
	Version  int           `json:"handwerk"`
	Replaced []storedValue `json:"replaced"`
}

type storedValue struct {
	Path []string `json:"path"`
	Was  any      `json:"was"`
}

// EncodeReplaced returns the note of replaced values, and the paths of those that are too large for it or for the room that the
// object has, in bytes.
func EncodeReplaced(values []Replaced, room int) (note string, large []string) {
	out, size := storedReplaced{Version: 1}, len(`{"handwerk":1,"replaced":[]}`)
	for _, each := range values {
		stored := storedValue{Was: each.Was}
		var fault error
		for _, element := range each.Path {
			text, err := fieldpath.SerializePathElement(element)
			if err != nil {
				fault = err
			}
			stored.Path = append(stored.Path, text)
		}
		text, err := json.Marshal(stored)
		if fault != nil || err != nil || len(text) > mostReplaced || size+len(text)+1 > min(mostNote, room) {
			large = append(large, each.Path.String())
			continue
		}
		size += len(text) + 1 // a comma
		out.Replaced = append(out.Replaced, stored)
	}
	if len(out.Replaced) == 0 {
		return "", large
	}
	text, err := json.Marshal(out)
	if err != nil {
		return "", large // not reached: each value was encoded
	}
	return string(text), large
}

// DecodeReplaced reads a note of replaced values.
func DecodeReplaced(note string) (out []Replaced, err error) {
	var stored storedReplaced
	if err := utiljson.Unmarshal([]byte(note), &stored); err != nil {
		return nil, fmt.Errorf("decoding replaced values: %w", err)
	}
	for _, each := range stored.Replaced {
		r := Replaced{Was: each.Was}
		for _, text := range each.Path {
			element, err := fieldpath.DeserializePathElement(text)
			if err != nil {
				return nil, fmt.Errorf("decoding replaced values: %w", err)
			}
			r.Path = append(r.Path, element)
		}
		out = append(out, r)
	}
	return out, nil
}
