// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"github.com/handwerk-dev/handwerk/dsl/source"
)

// tellFault writes a fault, and below it its line with a caret under the place.
func tellFault(w io.Writer, f source.Fault) {
	fmt.Fprintln(w, f)
	line, mark, found := strings.Cut(f.Excerpt, "\n")
	if !found {
		return
	}
	text := strings.TrimLeft(line, " ")
	begin := len(line) - len(text)
	before := []rune(text)
	before = before[:min(max(len(mark)-len("^")-begin, 0), len(before))]
	fmt.Fprintf(w, "  %s\n  %s^\n", text, strings.Repeat(" ", columns(before)))
}

// columns returns the width of text on a terminal.
func columns(text []rune) int {
	n := 0
	for _, r := range text {
		switch kind := width.LookupRune(r).Kind(); {
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case kind == width.EastAsianWide || kind == width.EastAsianFullwidth:
			n += 2
		default:
			n++
		}
	}
	return n
}
