// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package scan walks JSON text and decodes it, without reflection, and without a tree if a reader needs only a
// part. It is pure.
//
// Text from elsewhere must be checked by [Regular] first; all other functions require it. They return the same as
// the decoder of the API machinery (k8s.io/apimachinery/pkg/util/json): integers as int64, other numbers as
// float64, U+FFFD for invalid UTF-8, and the last of several values of one key.
package scan

import (
	"bytes"
	"iter"
	"strings"
	"unicode/utf8"
)

// deepest is the greatest nesting of regular values. The API machinery accepts 10,000.
const deepest = 1000

// longest is the greatest length of a regular number in bytes, and exponent the greatest number of digits of its
// exponent. Such numbers always fit into a float64, so decoding does not fail.
const (
	longest  = 200
	exponent = 2
)

// Regular reports whether data is one JSON object that this package can decode. It is false for invalid JSON, and
// in rare cases that need an ordinary decoder: keys with unnecessary escapes, which a search for the key would
// miss, or with invalid UTF-8, very deep nesting and very large numbers.
func Regular(data []byte) bool {
	c := checker{data: data}
	at := c.space(0)
	if at == len(data) || data[at] != '{' {
		return false
	}
	end := c.value(at, 0)
	return end >= 0 && c.space(end) == len(data)
}

// checker checks a text. Its methods take a position and return the end of the value there, or failed if it is
// invalid.
type checker struct{ data []byte }

const failed = -1

func (c checker) space(at int) int {
	for at < len(c.data) && isSpace(c.data[at]) {
		at++
	}
	return at
}

func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\t' || b == '\r' }

func (c checker) value(at, depth int) int {
	if at >= len(c.data) || depth > deepest {
		return failed
	}
	switch b := c.data[at]; b {
	case '"':
		return c.text(at)
	case '{':
		return c.list(at, '}', depth, c.member)
	case '[':
		return c.list(at, ']', depth, c.value)
	case 't':
		return c.literal(at, "true")
	case 'f':
		return c.literal(at, "false")
	case 'n':
		return c.literal(at, "null")
	default:
		return c.number(at)
	}
}

// list checks an array or an object with the given closing bracket, whose items are separated by commas.
func (c checker) list(at int, bracket byte, depth int, item func(at, depth int) int) int {
	at = c.space(at + 1)
	if at < len(c.data) && c.data[at] == bracket {
		return at + 1
	}
	for {
		if at = item(at, depth+1); at == failed {
			return failed
		}
		if at = c.space(at); at >= len(c.data) {
			return failed
		}
		switch c.data[at] {
		case bracket:
			return at + 1
		case ',':
			at = c.space(at + 1)
		default:
			return failed
		}
	}
}

func (c checker) member(at, depth int) int {
	if at >= len(c.data) || c.data[at] != '"' {
		return failed
	}
	if at = c.key(at); at == failed {
		return failed
	}
	if at = c.space(at); at >= len(c.data) || c.data[at] != ':' {
		return failed
	}
	return c.value(c.space(at+1), depth)
}

// special are the bytes that must be escaped in a string.
var special = func() (out [256]bool) {
	for b := range ' ' {
		out[b] = true
	}
	out['"'], out['\\'] = true, true
	return out
}()

func (c checker) text(at int) int {
	for at++; at < len(c.data); at++ {
		switch b := c.data[at]; {
		case !special[b]:
		case b == '"':
			return at + 1
		case b != '\\':
			return failed
		default:
			if at = c.escape(at + 1); at == failed {
				return failed
			}
		}
	}
	return failed
}

// key checks a key in UTF-8, with no escapes except necessary ones, so that equal keys have equal bytes. The
// managedFields of any object with a list have such keys, as k:{\"name\":\"a\"}.
func (c checker) key(at int) int {
	start, all := at+1, byte(0)
	for at++; at < len(c.data) && c.data[at] != '"'; at++ {
		switch b := c.data[at]; {
		case !special[b]:
			all |= b
		case b != '\\':
			return failed
		default:
			if at++; at == len(c.data) || strings.IndexByte(`"\bfnrt`, c.data[at]) < 0 {
				return failed
			}
		}
	}
	if at >= len(c.data) || all >= utf8.RuneSelf && !utf8.Valid(c.data[start:at]) {
		return failed
	}
	return at + 1
}

// escape checks the text after a backslash, and returns the position of its last byte.
func (c checker) escape(at int) int {
	if at >= len(c.data) {
		return failed
	}
	switch c.data[at] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return at
	case 'u':
		if at+4 < len(c.data) && hex4(c.data[at+1:]) >= 0 {
			return at + 4
		}
	}
	return failed
}

func (c checker) literal(at int, want string) int {
	if end := at + len(want); end <= len(c.data) && string(c.data[at:end]) == want {
		return end
	}
	return failed
}

func (c checker) number(at int) int {
	start := at
	at = c.past(at, "-")
	whole := c.digits(at)
	if whole == at || whole > at+1 && c.data[at] == '0' {
		return failed
	}
	if at = whole; c.past(at, ".") > at {
		if at = c.digits(at + 1); c.data[at-1] == '.' {
			return failed
		}
	}
	if c.past(at, "eE") > at {
		from := c.past(at+1, "+-")
		if at = c.digits(from); at == from || at > from+exponent {
			return failed
		}
	}
	if at-start > longest {
		return failed
	}
	return at
}

// past returns the end of a run of these characters; if there is none, the start position.
func (c checker) past(at int, any string) int {
	if at < len(c.data) && strings.IndexByte(any, c.data[at]) >= 0 {
		return at + 1
	}
	return at
}

func (c checker) digits(at int) int {
	for at < len(c.data) && '0' <= c.data[at] && c.data[at] <= '9' {
		at++
	}
	return at
}

// Members iterates over the members of an object: the keys as written between their quotes, see [Key], and the
// values. Other values have none.
func Members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		at := after(object, 0)
		if at >= len(object) || object[at] != '{' {
			return
		}
		for at = after(object, at+1); at < len(object) && object[at] == '"'; at = after(object, at+1) {
			end := skipText(object, at)
			key := object[at+1 : end-1]
			at = after(object, after(object, end)+1) // skip the colon
			end = skip(object, at)
			if !yield(key, object[at:end]) {
				return
			}
			if at = after(object, end); at >= len(object) || object[at] != ',' {
				return
			}
		}
	}
}

// Elements iterates over the values of an array. Other values have none.
func Elements(array []byte) iter.Seq[[]byte] {
	return func(yield func(value []byte) bool) {
		at := after(array, 0)
		if at >= len(array) || array[at] != '[' {
			return
		}
		for at = after(array, at+1); at < len(array) && array[at] != ']'; at = after(array, at+1) {
			end := skip(array, at)
			if !yield(array[at:end]) {
				return
			}
			if at = after(array, end); at >= len(array) || array[at] != ',' {
				return
			}
		}
	}
}

// Member returns the value of an object's member, the last one if there are several, or nil.
func Member(object []byte, key string) (value []byte) {
	for k, v := range Members(object) {
		if string(k) == key {
			value = v
		}
	}
	return value
}

// after returns the position of the next byte that is not a space.
func after(data []byte, at int) int {
	for at < len(data) && isSpace(data[at]) {
		at++
	}
	return at
}

// skip returns the end of a value.
func skip(data []byte, at int) int {
	if at >= len(data) {
		return at
	}
	switch data[at] {
	case '"':
		return skipText(data, at)
	case '{', '[':
		return skipNested(data, at)
	}
	for at < len(data) && !isSpace(data[at]) && data[at] != ',' && data[at] != '}' && data[at] != ']' {
		at++
	}
	return at
}

func skipNested(data []byte, at int) int {
	for depth := 0; at < len(data); {
		switch data[at] {
		case '"':
			at = skipText(data, at)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return at + 1
			}
		}
		at++
	}
	return at
}

// skipText returns the end of a string.
func skipText(data []byte, at int) int {
	for at++; at < len(data); at++ {
		next := bytes.IndexByte(data[at:], '"')
		if next < 0 {
			return len(data)
		}
		at += next
		escapes := 0
		for data[at-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return at + 1
		}
	}
	return at
}

// First splits the first value off a text, which need not be regular.
func First(data []byte) (value, rest []byte) {
	at := after(data, 0)
	end := min(skip(data, at), len(data))
	return data[at:end], data[end:]
}
