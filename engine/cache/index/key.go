// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// Key is a key of an index: text, a number, or true or false. Its first byte is the type, and the rest is the text of
// the value. Equal numbers are one key, such as 1 and 1.0.
type Key string

// The first bytes of keys.
const (
	truth  = 'b'
	number = 'n'
	text   = 's'
)

// keyOf returns the key of a plain value. It returns an error if the value cannot be a key.
func keyOf(value any) (Key, error) {
	switch v := value.(type) {
	case string:
		if !utf8.ValidString(v) {
			return "", fmt.Errorf("a key is text in UTF-8, found %q", v) // JSON could not hold it
		}
		return Key(string(rune(text)) + v), nil
	case bool:
		return Key(string(rune(truth)) + strconv.FormatBool(v)), nil
	case int64:
		return ofInt(v), nil
	case int:
		return ofInt(int64(v)), nil
	case float64:
		return ofFloat(v)
	}
	return "", fmt.Errorf("a key is text, a number or true or false, found %s", called(value))
}

func ofInt(v int64) Key { return Key(string(rune(number)) + strconv.FormatInt(v, 10)) }

func ofFloat(v float64) (Key, error) {
	switch whole := math.Trunc(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "", fmt.Errorf("a key is a number that can be written, found %v", v)
	case whole == v && math.Abs(v) < 1<<63:
		return ofInt(int64(whole)), nil
	}
	return Key(string(rune(number)) + strconv.FormatFloat(v, 'g', -1, 64)), nil
}

// called describes the type of a value for people.
func called(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	}
	return fmt.Sprintf("a %T", value)
}

// Value returns the plain value of the key: a string, a bool, an int64 or a float64.
func (k Key) Value() any {
	rest := string(k[1:])
	switch k[0] {
	case truth:
		return rest == "true"
	case number:
		if whole, err := strconv.ParseInt(rest, 10, 64); err == nil {
			return whole
		}
		fraction, _ := strconv.ParseFloat(rest, 64) // it was formatted from a float64
		return fraction
	}
	return rest
}

// String returns the key for people.
func (k Key) String() string { return fmt.Sprint(k.Value()) }

// compare orders keys: false and true, numbers by their value, texts by their bytes.
func compare(a, b Key) int {
	if a[0] != b[0] || a[0] != number {
		return cmp.Compare(a, b)
	}
	return cmp.Or(cmp.Compare(worth(a), worth(b)), cmp.Compare(a, b))
}

func worth(k Key) float64 {
	v, _ := strconv.ParseFloat(string(k[1:]), 64)
	return v
}
