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

// oneLine is an encoder that writes characters as escapes which would begin a line or steer a
// terminal. Log lines hold texts of those who may write an object or answer a request; none of them
// shall write a line that looks like the operator's own, or hide one.
type oneLine struct {
	zapcore.Encoder
	// rawMessage: the encoder does not escape messages itself, as JSON does.
	rawMessage bool
}

// Clone returns a copy for a logger with more fields.
func (e oneLine) Clone() zapcore.Encoder { return oneLine{e.Encoder.Clone(), e.rawMessage} }

// EncodeEntry writes a line. A stack trace is the program's own and keeps its lines.
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
		line.AppendString(escaped(text, "\n\t")) // the layout's own
	}
	return line, nil
}

// steers reports whether a terminal or a pager does something else with a character than show it.
func steers(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || isLayout(r)
}

// isLayout reports whether a character breaks lines or turns the direction of text around.
func isLayout(r rune) bool {
	return r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}

// escaped writes control characters as JSON has them, but for those to keep. Bytes that are no text
// are replaced: a terminal may take them for control characters of another encoding.
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
