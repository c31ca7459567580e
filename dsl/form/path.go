// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package form

import (
	"regexp"
	"strconv"
	"strings"
)

// Path leads to a value, written as people read it: resources[0].handlers[1].id.
type Path string

var plainKey = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$-]{0,62}$`)

// Key returns the path of a map's entry.
func (p Path) Key(name string) Path {
	switch {
	case !plainKey.MatchString(name):
		return p + Path("["+Quoted(name)+"]")
	case p == "":
		return Path(name)
	default:
		return p + "." + Path(name)
	}
}

// Index returns the path of a list's element.
func (p Path) Index(i int) Path { return p + Path("["+strconv.Itoa(i)+"]") }

// Join returns the path of a value below, by its path from here.
func (p Path) Join(below Path) Path {
	if p == "" || below == "" || below[0] == '[' {
		return p + below
	}
	return p + "." + below
}

// Parent returns a shorter path, or the empty one. It may lead to nothing when a key has a dot or
// a bracket in it; its parents lead to something again.
func (p Path) Parent() Path { return p[:max(strings.LastIndexAny(string(p), ".["), 0)] }

// holds reports whether another path leads to the same value, or to one in it.
func (p Path) holds(other Path) bool {
	rest, below := strings.CutPrefix(string(other), string(p))
	return below && (p == "" || rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Steps returns the keys and indexes that the path consists of. A long key is as it was cut.
func (p Path) Steps() []string {
	var out []string
	for rest := string(p); rest != ""; {
		quoted, err := strconv.QuotedPrefix(strings.TrimPrefix(rest, "["))
		if err == nil && rest[0] == '[' {
			key, _ := strconv.Unquote(quoted) // it is quoted
			out, rest = append(out, key), rest[len(quoted)+2:]
			continue
		}
		rest = strings.TrimLeft(rest, ".[")
		end := strings.IndexAny(rest, ".[]")
		if end < 0 {
			return append(out, rest)
		}
		out, rest = append(out, rest[:end]), strings.TrimPrefix(rest[end:], "]")
	}
	return out
}

// Quoted returns text in quotes and in one line, cut when it is long.
func Quoted(text string) string {
	const longest = 60
	if runes := []rune(text); len(runes) > longest {
		text = string(runes[:longest]) + "…"
	}
	return strconv.Quote(text)
}
