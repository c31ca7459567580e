// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package form

import (
	"regexp"
	"strconv"
	"strings"
)

// Path is the path of a value in the form for people: resources[0].handlers[1].id.
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

// Join returns the path of a value below, given its relative path.
func (p Path) Join(below Path) Path {
	if p == "" || below == "" || below[0] == '[' {
		return p + below
	}
	return p + "." + below
}

// Parent returns a shorter path; at the end it is empty. If a key has a dot or a bracket in it, some parents are
// not paths of values, but shorter ones are again.
func (p Path) Parent() Path { return p[:max(strings.LastIndexAny(string(p), ".["), 0)] }

// holds reports whether another path is the same, or is inside this one.
func (p Path) holds(other Path) bool {
	rest, below := strings.CutPrefix(string(other), string(p))
	return below && (p == "" || rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Steps returns the keys and indexes of the path. Long keys are cut.
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

// Quoted returns text in quotes, in one line; long text is cut.
func Quoted(text string) string {
	const longest = 60
	if runes := []rune(text); len(runes) > longest {
		text = string(runes[:longest]) + "…"
	}
	return strconv.Quote(text)
}
