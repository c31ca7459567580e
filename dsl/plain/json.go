// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// AppendJSON appends the JSON of a value, with exactly the bytes of encoding/json: keys are sorted, and HTML
// characters are escaped. Digests that are stored on objects depend on these bytes, so they must never change.
// Plain values are encoded without reflection; others are left to encoding/json.
func AppendJSON(to []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return append(to, "null"...), nil
	case bool:
		return strconv.AppendBool(to, v), nil
	case int64:
		return strconv.AppendInt(to, v, 10), nil
	case string:
		return appendText(to, v)
	case []any:
		if v != nil {
			return appendList(to, v)
		}
	case map[string]any:
		if v != nil {
			return appendMap(to, v)
		}
	case refuser:
		return to, v.RefuseJSON()
	}
	data, err := json.Marshal(value)
	return append(to, data...), err
}

// Text returns a scalar as it stands in a text: a number as JSON writes it.
func Text(value any) string {
	if f, is := value.(float64); is {
		if text, err := AppendJSON(nil, f); err == nil { // JSON has no NaN and no infinity
			return string(text)
		}
	}
	return fmt.Sprint(value)
}

// refuser is a value in a tree that cannot be encoded.
type refuser interface {
	// RefuseJSON returns the reason.
	RefuseJSON() error
}

func appendText(to []byte, text string) ([]byte, error) {
	if !simple(text) {
		data, err := json.Marshal(text)
		return append(to, data...), err
	}
	to = append(to, '"')
	to = append(to, text...)
	return append(to, '"'), nil
}

func appendList(to []byte, list []any) (_ []byte, err error) {
	to = append(to, '[')
	for i, value := range list {
		if i > 0 {
			to = append(to, ',')
		}
		if to, err = AppendJSON(to, value); err != nil {
			return to, err
		}
	}
	return append(to, ']'), nil
}

func appendMap(to []byte, tree map[string]any) (_ []byte, err error) {
	var few [16]string // needs no allocation
	keys := few[:0]
	for key := range tree {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	to = append(to, '{')
	for i, key := range keys {
		if i > 0 {
			to = append(to, ',')
		}
		if to, err = appendText(to, key); err != nil {
			return to, err
		}
		to = append(to, ':')
		if to, err = AppendJSON(to, tree[key]); err != nil {
			return to, err
		}
	}
	return append(to, '}'), nil
}

// simple reports whether a text needs no escapes in JSON.
func simple(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ', c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			return false
		}
	}
	return true
}
