// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// encoder writes trees as JSON. The result is that of encoding/json, in less than half the time and without
// garbage, but it keeps floats: 1.0 stays 1.0, so that decoding returns the same tree. An encoder is reused for its
// buffers.
type encoder struct {
	buf []byte
	// members is a stack with the sorted members of the current map above those of its parents.
	members []member
	err     error
}

type member struct {
	key   string
	value any
}

// encode writes a tree. The result is valid until the next call.
func (e *encoder) encode(tree map[string]any) ([]byte, error) {
	e.reset()
	e.object(tree)
	return e.buf, e.err
}

func (e *encoder) reset() {
	clear(e.members[:cap(e.members)]) // otherwise a pooled encoder would keep the last tree alive
	e.buf, e.members, e.err = e.buf[:0], e.members[:0], nil
}

func (e *encoder) value(v any) {
	switch v := v.(type) {
	case nil:
		e.buf = append(e.buf, "null"...)
	case string:
		e.buf = appendString(e.buf, v)
	case map[string]any:
		e.object(v)
	case []any:
		e.array(v)
	case int64:
		e.buf = strconv.AppendInt(e.buf, v, 10)
	case float64:
		e.float(v)
	case bool:
		e.buf = strconv.AppendBool(e.buf, v)
	default:
		// A value that is not from a decoder. Accepting it costs nothing.
		text, err := json.Marshal(v)
		e.fail(err)
		e.buf = append(e.buf, text...)
	}
}

func (e *encoder) object(tree map[string]any) {
	if tree == nil {
		e.value(nil)
		return
	}
	parents := len(e.members)
	e.mark('{')
	for _, m := range e.push(tree) {
		e.key(m.key)
		e.value(m.value)
	}
	e.mark('}')
	e.members = e.members[:parents]
}

func (e *encoder) array(a []any) {
	if a == nil {
		e.value(nil)
		return
	}
	e.mark('[')
	for i, v := range a {
		if i > 0 {
			e.mark(',')
		}
		e.value(v)
	}
	e.mark(']')
}

func (e *encoder) float(f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		e.fail(fmt.Errorf("%v has no form in JSON", f))
		return
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	start := len(e.buf)
	e.buf = strconv.AppendFloat(e.buf, f, format, -1, 64)
	if !slices.Contains(e.buf[start:], '.') && format == 'f' {
		e.buf = append(e.buf, ".0"...)
	}
}

// push returns the map's members, sorted. The caller pops them from the stack.
func (e *encoder) push(tree map[string]any) []member {
	parents := len(e.members)
	for key, value := range tree {
		e.members = append(e.members, member{key, value})
	}
	members := e.members[parents:]
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.key, b.key) })
	return members
}

func (e *encoder) mark(c byte) { e.buf = append(e.buf, c) }

func (e *encoder) key(key string) {
	if e.buf[len(e.buf)-1] != '{' {
		e.buf = append(e.buf, ',')
	}
	e.buf = append(appendString(e.buf, key), ':')
}

func (e *encoder) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

// appendString appends s as a JSON string. It escapes only what JSON requires, and replaces invalid UTF-8 by
// U+FFFD, as encoding/json does.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(append(b, s[start:i]...), "\ufffd"...)
				start = i + 1
			}
			i += size
			continue
		}
		if c < ' ' || c == '"' || c == '\\' {
			b = appendEscape(append(b, s[start:i]...), c)
			start = i + 1
		}
		i++
	}
	return append(append(b, s[start:]...), '"')
}

// appendEscape appends the escape of a quote, a backslash or a control character.
func appendEscape(b []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\t':
		return append(b, '\\', 't')
	case '\r':
		return append(b, '\\', 'r')
	default:
		return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
	}
}
