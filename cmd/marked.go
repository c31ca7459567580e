// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap/zapcore"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// mostLogged bounds each text of a line, in bytes: errors quote values of objects, and who edits an object without rest would fill
// the log with a megabyte each time.
const mostLogged = 32 << 10

// marked does what the marks of log lines ask for, and leaves them out; see [logmark.Warning]. It shortens what is long.
type marked struct {
	zapcore.Core
	// console: log lines are for people.
	console bool
}

// With returns the core for a logger with more fields.
func (m marked) With(fields []zapcore.Field) zapcore.Core {
	return marked{m.Core.With(shortened(fields)), m.console}
}

// Check makes this core write the line, and not the inner one.
func (m marked) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if m.Enabled(entry.Level) {
		return checked.AddCore(entry, m)
	}
	return checked
}

// Write writes a line.
func (m marked) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	if isMarked(fields, logmark.Warning) && entry.Level == zapcore.InfoLevel {
		entry.Level = zapcore.WarnLevel
	}
	if m.console && isMarked(fields, logmark.Quoted) {
		entry.Message = strconv.Quote(entry.Message)
	}
	entry.Message = plain.Short(entry.Message, mostLogged)
	return m.Core.Write(entry, slices.DeleteFunc(shortened(fields), isMark))
}

// shortened returns a copy of fields in which no text is longer than it may be.
func shortened(fields []zapcore.Field) []zapcore.Field {
	out := slices.Clone(fields)
	for i, f := range out {
		text := f.String
		switch held := f.Interface.(type) {
		case error:
			text = held.Error()
		case zapcore.ArrayMarshaler:
			text = joined(held)
		}
		if len(text) > mostLogged {
			out[i] = zapcore.Field{Key: f.Key, Type: zapcore.StringType, String: plain.Short(text, mostLogged)}
		}
	}
	return out
}

// joined returns a list of texts as one text, empty for another list.
func joined(list zapcore.ArrayMarshaler) string {
	of := reflect.ValueOf(list)
	if of.Kind() != reflect.Slice || of.Type().Elem().Kind() != reflect.String {
		return ""
	}
	var out strings.Builder
	for i := 0; i < of.Len() && out.Len() <= mostLogged; i++ {
		out.WriteString(of.Index(i).String() + ", ")
	}
	return strings.TrimSuffix(out.String(), ", ")
}

func isMarked(fields []zapcore.Field, mark string) bool {
	return slices.ContainsFunc(fields, func(f zapcore.Field) bool { return f.Key == mark && isMark(f) })
}

func isMark(f zapcore.Field) bool {
	return f.Type == zapcore.BoolType && f.Integer == 1 && (f.Key == logmark.Warning || f.Key == logmark.Quoted)
}
