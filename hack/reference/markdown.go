// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
	"unicode"
)

// code returns text as a piece of code in a table of Markdown.
func code(s string) string {
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	return fence + strings.ReplaceAll(s, "|", `\|`) + fence
}

// expression finds what is code in a description.
var expression = regexp.MustCompile(`\$\{[^}]*\}`)

// text returns a description as Markdown: signs that mean something there are escaped, expressions are code.
func text(s string) string {
	var out strings.Builder
	escape := strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`, "[", `\[`, "`", "\\`")
	at := 0
	for _, found := range expression.FindAllStringIndex(s, -1) {
		out.WriteString(escape.Replace(s[at:found[0]]) + code(s[found[0]:found[1]]))
		at = found[1]
	}
	out.WriteString(escape.Replace(s[at:]))
	return out.String()
}

// sentence returns the first sentence of a description.
func sentence(s string) string {
	first, _, more := strings.Cut(s, ". ")
	if more {
		first += "."
	}
	return first
}

// anchor returns the anchor that GitHub gives a heading.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}
