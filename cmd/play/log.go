// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/children/apply"
)

// sink turns the engine's log into lines.
type sink struct {
	lines  *lines
	values map[string]any
}

// logger returns a logger whose entries become lines.
func (l *lines) logger() logr.Logger { return logr.New(sink{lines: l}) }

// discard drops what has lines of its own.
var discard = logr.Discard()

// Init does nothing.
func (s sink) Init(logr.RuntimeInfo) {}

// Enabled takes what happens to objects, which is at debug level.
func (s sink) Enabled(level int) bool { return level <= 1 }

// WithName ignores names.
func (s sink) WithName(string) logr.LogSink { return s }

// WithValues returns a sink whose lines have the values, too.
func (s sink) WithValues(values ...any) logr.LogSink {
	return sink{s.lines, join(s.values, values)}
}

// Info writes a line. It leaves out details that are about no handler, and writes, which have lines already.
func (s sink) Info(level int, message string, values ...any) {
	all := join(s.values, values)
	if isDeed(message) || level > 0 && (all["handler"] == nil || slices.Contains(quiet, all["cause"])) {
		return
	}
	color := plain
	switch {
	case all[logmark.Warning] == true:
		color = yellow
	case level > 0 || all["name"] == nil:
		color = dim
	}
	s.write(message, all, color)
}

// quiet are the causes for which a handler that succeeds has no line: it looks again, and what it writes has lines.
var quiet = []any{string(dsl.Child), string(dsl.RelatedChange), string(dsl.IndexChange), string(dsl.Resync)}

// deeds are what the engine says of writes to children.
var deeds = []apply.Deed{
	apply.Created, apply.Updated, apply.PutBack, apply.Unchanged, apply.Adopted, apply.GivenBack, apply.Deleted, apply.Released,
	apply.Applied, apply.Patched,
}

func isDeed(message string) bool {
	return slices.ContainsFunc(deeds, func(d apply.Deed) bool { return strings.HasPrefix(message, string(d)+" ") })
}

// Error writes the line of an error.
func (s sink) Error(err error, message string, values ...any) {
	all := join(s.values, values)
	if err != nil {
		all["error"] = err.Error()
	}
	s.write(message, all, red)
}

// spoken are the values that have a place of their own in a line, or say nothing to somebody who plays.
var spoken = []string{"resource", "namespace", "name", "handler", "error", "took", "cause", "attempt", "operator", "uid", logmark.Warning}

func (s sink) write(message string, values map[string]any, color string) {
	text := func(key string) string {
		if values[key] == nil {
			return ""
		}
		return fmt.Sprint(values[key])
	}
	n := line{by: text("handler"), what: message, color: color}
	if text("name") != "" {
		n.object = object(text("resource"), text("namespace"), text("name"))
	}
	if cause := text("cause"); cause != "" {
		n.what += " (" + cause + ")"
	}
	if why := text("error"); why != "" {
		n.what += ": " + why
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(spoken, key) {
			n.what += " " + key + "=" + strings.ReplaceAll(text(key), "\n", " ")
		}
	}
	s.lines.write(n)
}

// join adds pairs of keys and values to a map, and leaves the map as it is.
func join(to map[string]any, pairs []any) map[string]any {
	out := maps.Clone(to)
	if out == nil {
		out = map[string]any{}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		out[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return out
}
