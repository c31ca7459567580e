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

// logger returns a logger whose entries become lines. What happens to objects is at debug level.
func (l *lines) logger() logr.Logger { return logmark.Entries(1, l.entry) }

// entry writes the line of an entry, if it has one: details that are about no handler have none, and writes have lines
// already.
func (l *lines) entry(e logmark.Entry) {
	switch {
	case e.Failed:
		l.logged(e, red)
	case isOperation(e.Message) || e.Level > 0 && (e.Values["handler"] == nil || slices.Contains(quiet, e.Values["cause"])):
	case e.Values[logmark.Warning] == true:
		l.logged(e, yellow)
	case e.Level > 0 || e.Values["name"] == nil:
		l.logged(e, dim)
	default:
		l.logged(e, plain)
	}
}

// quiet are the causes for which a handler that succeeds has no line: it looks again, and what it writes has lines.
var quiet = []any{string(dsl.Child), string(dsl.RelatedChange), string(dsl.IndexChange), string(dsl.Resync)}

// operations are the words of the engine for writes to children.
var operations = []apply.Operation{
	apply.Created, apply.Updated, apply.Reverted, apply.Unchanged, apply.Adopted, apply.LeftToOther, apply.Deleted, apply.Released,
	apply.Applied, apply.Patched,
}

func isOperation(message string) bool {
	return slices.ContainsFunc(operations, func(d apply.Operation) bool { return strings.HasPrefix(message, string(d)+" ") })
}

// spoken are the values that have a place of their own in a line, or say nothing to somebody who plays.
var spoken = []string{"resource", "namespace", "name", "handler", "error", "took", "cause", "attempt", "operator", "uid", "stack", logmark.Warning}

// logged writes the line of an entry.
func (l *lines) logged(e logmark.Entry, color string) {
	text := func(key string) string {
		if e.Values[key] == nil {
			return ""
		}
		return fmt.Sprint(e.Values[key])
	}
	n := line{by: text("handler"), what: e.Message, color: color}
	if text("name") != "" {
		n.object = object(text("resource"), text("namespace"), text("name"))
	}
	if cause := text("cause"); cause != "" {
		n.what += " (" + cause + ")"
	}
	if why := text("error"); why != "" {
		n.what += ": " + why
	}
	for _, key := range slices.Sorted(maps.Keys(e.Values)) {
		if !slices.Contains(spoken, key) {
			n.what += " " + key + "=" + strings.ReplaceAll(text(key), "\n", " ")
		}
	}
	if stack := text("stack"); stack != "" {
		n.what += "\n    " + strings.NewReplacer("\n", "\n    ", "\t", "    ").Replace(stack)
	}
	l.write(n)
}
