// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"regexp"
	"slices"
	"strings"
)

// Parts of a line of YAML: its comment, parts between values, a value without quotes, and such a value within braces or brackets.
var (
	comment = regexp.MustCompile(`(^|\s)#.*`)
	between = regexp.MustCompile(`^(?:\s+|[,:?]|-\s|[&*!][^\s,\[\]{}]*|'[^']*'|"(?:\\.|[^"\\])*")`)
	block   = regexp.MustCompile(`^(?:[^:]|:\S)+`)
	flow    = regexp.MustCompile(`^(?:[^,\[\]{}?:]|:[^\s,\[\]{}?])+`)
)

// unquoted finds a value that lacks quotes in a line for which the parser has this message. It returns the position of the value in
// the line and the cure; an empty cure means that there is no such value.
func unquoted(line, message string) (at int, cure string) {
	inFlow := strings.HasPrefix(message, "did not find expected ',' or ")
	if inFlow {
		at, cure = split(line)
	}
	switch {
	case cure != "":
		return at, cure
	case message == "did not find expected key":
		return begun(line, goesOn)
	case inFlow || slices.Contains(ofSigns, message):
		return begun(line, sign)
	}
	return 0, ""
}

// ofSigns are the parser's messages about a value that begins with a sign of YAML.
var ofSigns = []string{
	"did not find expected alphabetic or numeric character",
	"did not find expected comment or line break",
	"did not find expected whitespace or line break",
	"did not find expected tag URI",
	"found character that cannot start any token",
	"found undefined tag handle",
}

var (
	// entries matches what comes before the first value of a line, and beforeValue what comes before others.
	entries     = regexp.MustCompile(`^\s*(-\s+)*`)
	beforeValue = regexp.MustCompile(`(:\s|[,\[{])\s*`)
	quoted      = regexp.MustCompile(`^("(\\.|[^"\\])*"|'[^']*')`)
	// sign matches a value that cannot begin so without quotes, and goesOn one that goes on after quotes or brackets.
	sign   = regexp.MustCompile("^([@`%!|>]|[*&]([^\\w-]|$))")
	goesOn = regexp.MustCompile(`^("(\\.|[^"\\])*"|'[^']*'|\[[^\]]*\]|\{[^}]*\})\s*[^\s#,:\]}]`)
)

// begun finds a value that begins so. Quoted values count as one, whatever is in them.
func begun(line string, with *regexp.Regexp) (at int, cure string) {
	at = len(entries.FindString(line))
	for {
		if with.MatchString(line[at:]) {
			return at, leading(line[at:])
		}
		at += len(quoted.FindString(line[at:]))
		before := beforeValue.FindStringIndex(line[at:])
		if before == nil {
			return 0, ""
		}
		at += before[1]
	}
}

// leading is the cure for a value without quotes that begins with a sign of YAML.
func leading(value string) string {
	if strings.ContainsAny(value[:1], `"'[{`) {
		return " (all of this value stands in quotes)"
	}
	return " (a value that begins with " + value[:1] + " stands in quotes)"
}

// split finds a value within braces or brackets that lacks quotes: a bracket, a brace or a question mark ends it for YAML. It
// returns the position of the value and the cure; an empty cure means that there is no such value.
func split(line string) (at int, cure string) {
	line = comment.ReplaceAllString(line, "")
	for depth := 0; at < len(line); {
		rest := line[at:]
		size := len(between.FindString(rest))
		switch {
		case size > 0:
		case strings.ContainsAny(rest[:1], "[{"):
			depth, size = depth+1, 1
		case strings.ContainsAny(rest[:1], "]}"):
			depth, size = depth-1, 1
		case depth <= 0:
			size = len(block.FindString(rest))
		default:
			size = len(flow.FindString(rest))
			if next := rest[size:]; next != "" && strings.ContainsAny(next[:1], "[{?") {
				return at, cureOf(rest[:size] + next[:1])
			}
		}
		at += max(size, 1)
	}
	return 0, ""
}

// cureOf returns the cure for a value that lacks quotes, by its begin.
func cureOf(begin string) string {
	if strings.HasSuffix(begin, "${") {
		return " (within {…} and […] of YAML, ${…} stands in quotes)"
	}
	return " (within {…} and […] of YAML, a value with ?, [ or { in it stands in quotes)"
}
