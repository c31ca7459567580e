// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"github.com/handwerk-dev/handwerk/dsl/source"
)

// tellFault writes a fault behind a word, and below it its line with a caret under the place.
func tellFault(w tame, word, color string, f source.Fault) {
	fmt.Fprint(w, w.fit(w.paint(color, word)+f.Error()+"\n"))
	line, mark, found := strings.Cut(f.Excerpt, "\n")
	if !found {
		return
	}
	text := strings.TrimLeft(line, " ")
	begin := len(line) - len(text)
	before := []rune(text)
	before = before[:min(max(len(mark)-len("^")-begin, 0), len(before))]
	fmt.Fprintf(w, "  %s\n  %s%s\n", text, strings.Repeat(" ", columns(before)), w.paint(green, "^"))
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
