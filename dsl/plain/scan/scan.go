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
	end := Object(data)
	return end >= 0 && after(data, end) == len(data)
}

// Object returns the end of the regular object at the beginning of data. Without such an object it returns [Short] or
// [Odd].
func Object(data []byte) (end int) {
	c := checker{data: data}
	switch at := after(data, 0); {
	case at == len(data):
		return Short
	case data[at] != '{':
		return Odd
	default:
		return c.value(at, 0)
	}
}

// Ends of values that are not regular.
const (
	// Odd is the end of a value that is not regular, whatever follows.
	Odd = -1
	// Short is the end of a value that goes on after the text.
	Short = -2
)

// checker checks a text. Its methods take a position and return the end of the value there, or one of the ends
// above.
type checker struct{ data []byte }

func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\t' || b == '\r' }

func (c checker) value(at, depth int) int {
	if at >= len(c.data) {
		return Short
	}
	if depth > deepest {
		return Odd
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
	at = after(c.data, at+1)
	if at < len(c.data) && c.data[at] == bracket {
		return at + 1
	}
	for {
		if at = item(at, depth+1); at < 0 {
			return at
		}
		if at = after(c.data, at); at >= len(c.data) {
			return Short
		}
		switch c.data[at] {
		case bracket:
			return at + 1
		case ',':
			at = after(c.data, at+1)
		default:
			return Odd
		}
	}
}

func (c checker) member(at, depth int) int {
	if at = c.key(at); at < 0 {
		return at
	}
	if at = after(c.data, at); at >= len(c.data) {
		return Short
	}
	if c.data[at] != ':' {
		return Odd
	}
	return c.value(after(c.data, at+1), depth)
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
			return Odd
		default:
			if at = c.escape(at + 1); at < 0 {
				return at
			}
		}
	}
	return Short
}

// key checks a key in UTF-8, with no escapes except necessary ones, so that equal keys have equal bytes. The
// managedFields of any object with a list have such keys, as k:{\"name\":\"a\"}.
func (c checker) key(at int) int {
	switch {
	case at >= len(c.data):
		return Short
	case c.data[at] != '"':
		return Odd
	}
	start, all := at+1, byte(0)
	for at++; at < len(c.data) && c.data[at] != '"'; at++ {
		switch b := c.data[at]; {
		case !special[b]:
			all |= b
		case b != '\\':
			return Odd
		default:
			if at++; at < len(c.data) && strings.IndexByte(`"\bfnrt`, c.data[at]) < 0 {
				return Odd
			}
		}
	}
	if at >= len(c.data) {
		return Short
	}
	if all >= utf8.RuneSelf && !utf8.Valid(c.data[start:at]) {
		return Odd
	}
	return at + 1
}

// escape checks the text after a backslash, and returns the position of its last byte.
func (c checker) escape(at int) int {
	if at >= len(c.data) {
		return Short
	}
	switch c.data[at] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return at
	case 'u':
		return c.hex(at + 1)
	}
	return Odd
}

// hex checks four hexadecimal digits, and returns the position of the last one.
func (c checker) hex(at int) int {
	for end := at + 4; at < end; at++ {
		switch {
		case at >= len(c.data):
			return Short
		case !isHex(c.data[at]):
			return Odd
		}
	}
	return at - 1
}

func isHex(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b && b <= 'f' || 'A' <= b && b <= 'F'
}

func (c checker) literal(at int, want string) int {
	end := at + len(want)
	switch has := string(c.data[at:min(end, len(c.data))]); {
	case has == want:
		return end
	case at+len(has) == len(c.data) && strings.HasPrefix(want, has):
		return Short
	}
	return Odd
}

func (c checker) number(at int) int {
	start := at
	at = c.past(at, "-")
	whole := c.digits(at)
	if whole == at || whole > at+1 && c.data[at] == '0' {
		return Odd
	}
	if at = whole; c.past(at, ".") > at {
		if at = c.digits(at + 1); c.data[at-1] == '.' {
			return Odd
		}
	}
	if c.past(at, "eE") > at {
		from := c.past(at+1, "+-")
		if at = c.digits(from); at == from || at > from+exponent {
			return Odd
		}
	}
	if at-start > longest {
		return Odd
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
