// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"regexp"
	"strconv"
	"strings"
)

// path leads to a value of a document, written as people read it: resources[0].handlers[1].id.
type path string

var plainKey = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$-]{0,62}$`)

// key returns the path of a map's entry.
func (p path) key(name string) path {
	switch {
	case !plainKey.MatchString(name):
		return p + path("["+quoted(name)+"]")
	case p == "":
		return path(name)
	default:
		return p + "." + path(name)
	}
}

// index returns the path of a list's element.
func (p path) index(i int) path { return p + path("["+strconv.Itoa(i)+"]") }

// parent returns a shorter path, or the empty one. It may lead to nothing when a key has a dot or
// a bracket in it; its parents lead to something again.
func (p path) parent() path { return p[:max(strings.LastIndexAny(string(p), ".["), 0)] }

// quoted returns text in quotes and in one line, cut when it is long.
func quoted(text string) string {
	const longest = 60
	if runes := []rune(text); len(runes) > longest {
		text = string(runes[:longest]) + "…"
	}
	return strconv.Quote(text)
}
