// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"strings"
	"unicode"

	zapbuffer "go.uber.org/zap/buffer"
	"go.uber.org/zap/zapcore"
)

// oneLine is an encoder that escapes characters which start a new line or control a terminal. Log lines contain
// texts of people who may write an object or answer a request. Such a text must not be able to look like a line of
// the operator, or to hide one.
type oneLine struct {
	zapcore.Encoder
	// rawMessage: the encoder does not escape messages itself, as that of JSON does.
	rawMessage bool
}

// Clone returns a copy for a logger with more fields.
func (e oneLine) Clone() zapcore.Encoder { return oneLine{e.Encoder.Clone(), e.rawMessage} }

// EncodeEntry writes a line. A stack trace comes from the program itself, and keeps its lines.
func (e oneLine) EncodeEntry(entry zapcore.Entry, fields []zapcore.Field) (*zapbuffer.Buffer, error) {
	if e.rawMessage {
		entry.Message = escaped(entry.Message, "")
	}
	line, err := e.Encoder.EncodeEntry(entry, fields)
	if err != nil {
		return nil, err
	}
	if text := line.String(); strings.ContainsFunc(text, steers) {
		line.Reset()
		line.AppendString(escaped(text, "\n\t")) // line breaks and tabs of the layout
	}
	return line, nil
}

// steers reports whether a terminal or a pager does anything with a character other than show it.
func steers(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || isLayout(r)
}

// isLayout reports whether a character breaks lines or changes the direction of text.
func isLayout(r rune) bool {
	return r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}

// escaped escapes control characters as in JSON, except those to keep. It replaces invalid bytes, which a terminal
// may read as control characters of another encoding.
func escaped(text, keep string) string {
	var out strings.Builder
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		switch {
		case strings.ContainsRune(keep, r) || !unicode.IsControl(r) && !isLayout(r):
			out.WriteRune(r)
		case r == '\n':
			out.WriteString(`\n`)
		case r == '\t':
			out.WriteString(`\t`)
		case r == '\r':
			out.WriteString(`\r`)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}
