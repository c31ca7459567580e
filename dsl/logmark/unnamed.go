// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package logmark

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Unnamed removes a name from a text, so that texts about several objects can be compared. A name within another
// word stays.
func Unnamed(text, name string) string {
	if name == "" || !strings.Contains(text, name) {
		return text
	}
	var out strings.Builder
	last := ' '
	for text != "" {
		if rest, found := strings.CutPrefix(text, name); found && !wordly(last) {
			if next, _ := utf8.DecodeRuneInString(rest); rest == "" || !wordly(next) {
				out.WriteByte(0)
				text, last = rest, 'x'
				continue
			}
		}
		r, n := utf8.DecodeRuneInString(text)
		out.WriteString(text[:n])
		text, last = text[n:], r
	}
	return out.String()
}

func wordly(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
