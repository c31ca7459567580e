// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"hash/maphash"
	"strconv"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
)

// Tree decodes an object. The tree shares nothing with data.
func Tree(data []byte) map[string]any {
	d := decoders.Get().(*decoder)
	defer decoders.Put(d)
	d.data, d.at = data, after(data, 0)
	tree, _ := d.value().(map[string]any)
	d.data = nil
	return tree
}

// Slim is Tree without managedFields, which often are the larger part of an object.
func Slim(data []byte) map[string]any {
	d := decoders.Get().(*decoder)
	defer decoders.Put(d)
	d.data, d.at = data, after(data, 0)
	tree := d.slim()
	d.data = nil
	return tree
}

// Value decodes a value. It shares nothing with data.
func Value(data []byte) any {
	d := decoders.Get().(*decoder)
	defer decoders.Put(d)
	d.data, d.at = data, after(data, 0)
	v := d.value()
	d.data = nil
	return v
}

// Text decodes a string; for other values it returns an empty text.
func Text(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	return unquote(value[1 : len(value)-1])
}

// Key decodes a key of [Members]. Most keys need no decoding.
func Key(written []byte) string { return unquote(written) }

var decoders = sync.Pool{New: func() any { return &decoder{seed: maphash.MakeSeed()} }}

// decoder decodes one text after the other.
type decoder struct {
	data []byte
	at   int
	// keys caches keys: objects of a resource have the same ones.
	keys [512]string
	seed maphash.Seed
}

func (d *decoder) value() any {
	if d.at >= len(d.data) {
		return nil
	}
	switch d.data[d.at] {
	case '"':
		return unquote(d.text())
	case '{':
		return d.object()
	case '[':
		return d.array()
	case 't':
		d.at += len("true")
		return true
	case 'f':
		d.at += len("false")
		return false
	case 'n':
		d.at += len("null")
		return nil
	default:
		return d.number()
	}
}

// text returns a string as it is written, without its quotes.
func (d *decoder) text() []byte {
	start := d.at + 1
	d.at = skipText(d.data, d.at)
	return d.data[start : d.at-1]
}

func (d *decoder) object() map[string]any {
	out := map[string]any{}
	for d.next('}') {
		key := d.member()
		out[key] = d.value()
	}
	return out
}

// member returns the key of a member, and moves to its value.
func (d *decoder) member() string {
	key := d.key(d.text())
	d.at = after(d.data, after(d.data, d.at)+1) // skip the colon
	return key
}

// slim decodes an object without the managedFields of its metadata.
func (d *decoder) slim() map[string]any {
	out := map[string]any{}
	for d.next('}') {
		key := d.member()
		if key != "metadata" || d.at == len(d.data) || d.data[d.at] != '{' {
			out[key] = d.value()
			continue
		}
		out[key] = d.without("managedFields")
	}
	return out
}

// without decodes an object without one of its members.
func (d *decoder) without(name string) map[string]any {
	out := map[string]any{}
	for d.next('}') {
		key := d.member()
		if key == name {
			d.at = skip(d.data, d.at)
			continue
		}
		out[key] = d.value()
	}
	return out
}

func (d *decoder) array() []any {
	out := []any{}
	for d.next(']') {
		out = append(out, d.value())
	}
	return out
}

// next moves to the next item of an array or object, or behind its closing bracket; it reports whether there is an
// item.
func (d *decoder) next(bracket byte) bool {
	d.at = after(d.data, d.at)
	if d.at >= len(d.data) {
		return false
	}
	if d.data[d.at] != bracket { // an opening bracket or a comma
		if d.at = after(d.data, d.at+1); d.at < len(d.data) && d.data[d.at] != bracket {
			return true
		}
	}
	d.at++
	return false
}

// keyLimit is the greatest length of a cached key.
const keyLimit = 64

func (d *decoder) key(written []byte) string {
	if len(written) > keyLimit {
		return unquote(written)
	}
	slot := &d.keys[maphash.Bytes(d.seed, written)%uint64(len(d.keys))]
	if *slot != string(written) {
		key := unquote(written)
		if key != string(written) {
			return key
		}
		*slot = key
	}
	return *slot
}

func (d *decoder) number() any {
	start := d.at
	d.at = skip(d.data, d.at)
	written := d.data[start:d.at]
	if whole, ok := small(written); ok {
		return whole
	}
	if !bytes.ContainsAny(written, ".eE") {
		if whole, err := strconv.ParseInt(string(written), 10, 64); err == nil {
			return whole
		}
	}
	float, _ := strconv.ParseFloat(string(written), 64) // regular numbers always parse
	return float
}

// small decodes an integer with few digits.
func small(written []byte) (n int64, ok bool) {
	digits := written
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 18 {
		return 0, false
	}
	for _, b := range digits {
		if b < '0' || b > '9' {
			return 0, false
		}
		n = 10*n + int64(b-'0')
	}
	if len(digits) < len(written) {
		n = -n
	}
	return n, true
}

// unquote decodes a string from its text between the quotes.
func unquote(written []byte) string {
	if bytes.IndexByte(written, '\\') < 0 && utf8.Valid(written) {
		return string(written)
	}
	out := make([]byte, 0, len(written))
	for at := 0; at < len(written); {
		if written[at] == '\\' {
			out, at = appendUnescaped(out, written, at+1)
			continue
		}
		r, size := utf8.DecodeRune(written[at:]) // U+FFFD for a byte that is not UTF-8
		out = utf8.AppendRune(out, r)
		at += size
	}
	return string(out)
}

// appendUnescaped appends the character of an escape, and returns the end of the escape. A lone surrogate becomes
// U+FFFD.
func appendUnescaped(out, written []byte, at int) ([]byte, int) {
	if written[at] != 'u' {
		return append(out, plain[written[at]]), at + 1
	}
	r, at := hex4(written[at+1:]), at+5
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(out, r), at
	}
	if at+6 <= len(written) && written[at] == '\\' && written[at+1] == 'u' {
		if both := utf16.DecodeRune(r, hex4(written[at+2:])); both != utf8.RuneError {
			return utf8.AppendRune(out, both), at + 6
		}
	}
	return utf8.AppendRune(out, utf8.RuneError), at
}

// plain has the character for each letter after a backslash.
var plain = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// hex4 decodes four hexadecimal digits; invalid ones give a negative number.
func hex4(written []byte) (n int32) {
	if len(written) < 4 {
		return -1
	}
	for _, b := range written[:4] {
		switch {
		case '0' <= b && b <= '9':
			b -= '0'
		case 'a' <= b && b <= 'f':
			b -= 'a' - 10
		case 'A' <= b && b <= 'F':
			b -= 'A' - 10
		default:
			return -1
		}
		n = n<<4 | int32(b)
	}
	return n
}
