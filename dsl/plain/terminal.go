// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"fmt"
	"strings"
	"unicode"
)

// Steers reports whether a terminal or a pager does anything with a character other than show it.
func Steers(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || isLayout(r)
}

// isLayout reports whether a character breaks lines or changes the direction of text.
func isLayout(r rune) bool {
	return r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}

// Escaped escapes control characters as in JSON, except those to keep. It replaces invalid bytes, which a terminal
// may read as control characters of another encoding.
func Escaped(text, keep string) string {
	var out strings.Builder
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		switch {
		case strings.ContainsRune(keep, r) || !unicode.IsControl(r) && !isLayout(r):
			out.WriteRune(r)
		case r == '\n':
			out.WriteString(`\n`)
		case r == '\t':
			out.WriteString(`\t`)
		case r == '\r':
			out.WriteString(`\r`)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}
