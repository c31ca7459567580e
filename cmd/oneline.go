// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"strings"

	zapbuffer "go.uber.org/zap/buffer"
	"go.uber.org/zap/zapcore"

	"github.com/handwerk-dev/handwerk/dsl/plain"
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
		entry.Message = plain.Escaped(entry.Message, "")
	}
	line, err := e.Encoder.EncodeEntry(entry, fields)
	if err != nil {
		return nil, err
	}
	if text := line.String(); strings.ContainsFunc(text, plain.Steers) {
		line.Reset()
		line.AppendString(plain.Escaped(text, "\n\t")) // line breaks and tabs of the layout
	}
	return line, nil
}
